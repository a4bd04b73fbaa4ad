//! Lines for the run's log. Each counts against the call's log limits, so a tool that logs in a loop is ended. Outside
//! a component, where an author's unit tests run, they go to standard error.

use crate::bindings::motor::host::log::Level;

/// Writes a line for the author of the component.
pub fn debug(message: &str) {
    write(Level::Debug, message);
}

/// Writes a line about an ordinary event.
pub fn info(message: &str) {
    write(Level::Info, message);
}

/// Writes a line about something to look at.
pub fn warn(message: &str) {
    write(Level::Warn, message);
}

/// Writes a line about something that failed.
pub fn error(message: &str) {
    write(Level::Error, message);
}

#[cfg(target_family = "wasm")]
fn write(level: Level, message: &str) {
    crate::bindings::motor::host::log::write(level, message);
}

#[cfg(not(target_family = "wasm"))]
fn write(level: Level, message: &str) {
    eprintln!("{level:?}: {message}");
}
