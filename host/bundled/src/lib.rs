//! The guests that are part of the program: built by `cargo xtask guests`, embedded here.
//!
//! A separate crate because build products enter here: nothing else depends on how guests are built. A development build
//! without guests has none here (`build.rs`).

#[cfg(test)]
mod listing;
#[cfg(test)]
mod tests;

include!(concat!(env!("OUT_DIR"), "/components.rs"));

/// The bytes of the component with this name; `None` too for one that was not built with the program.
#[must_use]
pub fn component(name: &str) -> Option<&'static [u8]> {
    COMPONENTS.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}
