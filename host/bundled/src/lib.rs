//! The guests that are part of the program: built by `cargo xtask guests`, embedded here, each with the code that it
//! was compiled to.
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

/// The code that the component with this name was compiled to when it was built, if it was.
#[must_use]
pub fn code(name: &str) -> Option<&'static [u8]> {
    CODE.iter().find(|(known, _)| *known == name).map(|(_, code)| *code)
}
