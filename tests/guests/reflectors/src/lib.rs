//! A reflector that attacks the host and the beliefs of its cortex. The attack is named by the text that it gets: by `attack:NAME`
//! in the facts, and by the whole reply. Any other text makes it an honest one, which trusts the first peer by one point more.
//!
//! Built for WASI it also reaches for the network, which no reflector may import.

mod attack;

use bindings::exports::motor::host::reflection::{Assessment, Guest, Prompt, Proposals};

/// Generated from the WIT world.
#[allow(missing_docs, unsafe_code, clippy::all, clippy::restriction)]
mod bindings {
    wit_bindgen::generate!({ path: "../../../wit", world: "reflector" });
    use super::Reflectors;
    export!(Reflectors with_types_in self);
}

struct Reflectors;

impl Guest for Reflectors {
    fn compose(facts: String) -> Result<Prompt, String> {
        #[cfg(target_os = "wasi")]
        network();
        let named = facts.split_once("attack:").map(|(_, rest)| rest);
        let name: String =
            named.unwrap_or_default().chars().take_while(|sign| sign.is_alphanumeric() || *sign == '_').collect();
        attack::compose(&name).unwrap_or_else(|| {
            bindings::motor::host::log::write(bindings::motor::host::log::Level::Info, "an honest prompt");
            Ok(Prompt { system: "You reflect.".to_owned(), user: facts })
        })
    }

    fn interpret(reply: String) -> Result<Proposals, String> {
        attack::interpret(&reply).unwrap_or_else(|| {
            let assessment = Assessment { peer: "mai".to_owned(), trust: 1.0, rationale: "an honest one".to_owned() };
            Ok(Proposals { assessments: vec![assessment], beliefs: Vec::new(), summary: reply })
        })
    }
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
