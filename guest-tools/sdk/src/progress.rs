//! Progress reports of long work. Outside a component they are printed to standard error.

/// Reports the current work and, if known, the fraction that is complete, from 0.0 to 1.0.
#[cfg(target_family = "wasm")]
pub fn report(message: &str, fraction: Option<f32>) {
    crate::bindings::motor::host::progress::report(message, fraction);
}

/// Reports the current work and, if known, the fraction that is complete, from 0.0 to 1.0.
#[cfg(not(target_family = "wasm"))]
pub fn report(message: &str, fraction: Option<f32>) {
    eprintln!("{message} ({fraction:?})");
}
