//! Signs of life from long work. Outside a component they go to standard error.

/// Says what is being done, and how far it is, from 0.0 to 1.0, when that is known.
#[cfg(target_family = "wasm")]
pub fn report(message: &str, fraction: Option<f32>) {
    crate::bindings::motor::host::progress::report(message, fraction);
}

/// Says what is being done, and how far it is, from 0.0 to 1.0, when that is known.
#[cfg(not(target_family = "wasm"))]
pub fn report(message: &str, fraction: Option<f32>) {
    eprintln!("{message} ({fraction:?})");
}
