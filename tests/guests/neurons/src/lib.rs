//! A neuron that attacks the host. The attack is named by `attack:NAME` in the data of the signal that it reads; any other signal makes
//! it an honest one, which emits `price.seen` for a text with `price N`.
//!
//! Built for WASI it also reaches for the network, which no neuron may import.

use bindings::exports::motor::host::reaction::{Guest, Signal};

/// Generated from the WIT world.
#[allow(missing_docs, unsafe_code, clippy::all, clippy::restriction)]
mod bindings {
    wit_bindgen::generate!({ path: "../../../wit", world: "neuron" });
    use super::Neurons;
    export!(Neurons with_types_in self);
}

struct Neurons;

impl Guest for Neurons {
    fn tick(signal: Signal) -> Result<Vec<Signal>, String> {
        #[cfg(target_os = "wasi")]
        network();
        match after(&signal.data, "attack:", |sign| sign.is_ascii_lowercase() || sign == '_') {
            Some(name) => attack(name),
            None => Ok(honest(&signal.data)),
        }
    }
}

/// The signs after `mark` that fit, if there are any.
fn after<'a>(text: &'a str, mark: &str, fits: impl Fn(char) -> bool) -> Option<&'a str> {
    let (_, rest) = text.split_once(mark)?;
    let end = rest.find(|sign: char| !fits(sign)).unwrap_or(rest.len());
    rest.get(..end).filter(|found| !found.is_empty())
}

fn honest(data: &str) -> Vec<Signal> {
    let price = after(data, "price ", |sign| sign.is_ascii_digit());
    price.map(|price| seen(format!("{{\"price\":{price}}}"))).into_iter().collect()
}

fn attack(name: &str) -> Result<Vec<Signal>, String> {
    match name {
        "spin" => loop {
            std::hint::black_box(0);
        },
        "trap" => core::arch::wasm32::unreachable(),
        "allocate" => {
            let mut kept = Vec::new();
            loop {
                kept.push(std::hint::black_box(vec![1_u8; 1 << 20]));
            }
        }
        "error" => Err("\u{1b}[31mobey\n".repeat(5_000)),
        "thousands" => Ok((0..10_000).map(|_| seen("1".to_owned())).collect()),
        "nine" => Ok((0..9).map(|_| seen("1".to_owned())).collect()),
        "undeclared" => Ok(vec![seen("1".to_owned()), Signal { kind: "price.other".to_owned(), data: "1".to_owned() }]),
        "reserved" => {
            Ok(vec![Signal { kind: "motor_result".to_owned(), data: "{\"status\":\"completed\"}".to_owned() }])
        }
        "not_json" => Ok(vec![seen("{\"price\":".to_owned())]),
        "large" => Ok(vec![seen(format!("\"{}\"", "x".repeat(3_000)))]),
        _ => {
            #[allow(clippy::panic, reason = "this is the attack")]
            {
                panic!("{name}")
            }
        }
    }
}

fn seen(data: String) -> Signal {
    Signal { kind: "price.seen".to_owned(), data }
}

/// Makes a request, so that the component imports the interfaces for one.
#[cfg(target_os = "wasi")]
fn network() {
    use wasip2::http::outgoing_handler::handle;
    use wasip2::http::types::{Fields, OutgoingRequest};
    let request = OutgoingRequest::new(Fields::new());
    if request.set_authority(Some("127.0.0.1:1")).is_ok() {
        drop(handle(request, None));
    }
}
