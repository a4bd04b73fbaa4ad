//! Signs of life from long work. Outside a component they go to standard error.

/// Reports the current work, and how far it is, from 0.0 to 1.0, if that is known.
#[cfg(target_family = "wasm")]
pub fn report(message: &str, fraction: Option<f32>) {
    crate::bindings::motor::host::progress::report(message, fraction);
}

/// Reports the current work, and how far it is, from 0.0 to 1.0, if that is known.
#[cfg(not(target_family = "wasm"))]
pub fn report(message: &str, fraction: Option<f32>) {
    eprintln!("{message} ({fraction:?})");
}
