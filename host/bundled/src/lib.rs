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

/// A component in the program. `cargo xtask guests` packed it.
#[derive(Debug, Clone, Copy)]
pub struct PackedComponent {
    /// Name of the component.
    pub name: &'static str,
    /// SHA-256 of the component.
    pub hash: &'static [u8; 32],
    /// The component, compressed by zstd.
    pub packed: &'static [u8],
}

/// The components in the program, sorted by name. Empty in a build without guests.
pub fn components() -> impl Iterator<Item = PackedComponent> {
    COMPONENTS.iter().filter_map(|(name, bytes)| {
        let (hash, packed) = bytes.split_first_chunk()?;
        Some(PackedComponent { name, hash, packed })
    })
}

/// The component with this name; `None` too for one that was not built with the program.
#[must_use]
pub fn component(name: &str) -> Option<PackedComponent> {
    components().find(|component| component.name == name)
}

/// The code that the component with this name was compiled to when it was built, if it was.
#[must_use]
pub fn code(name: &str) -> Option<&'static [u8]> {
    CODE.iter().find(|(known, _)| *known == name).map(|(_, code)| *code)
}

/// An engine that is not in the program, because few need it and it is large: two files, which the program takes from
/// anywhere, as they have the hashes that it was built with.
#[derive(Debug)]
pub struct PinnedEngine {
    /// Name of the component. The files are `NAME.wasm` and `NAME.code`.
    pub name: &'static str,
    /// Hash of the component, in hex.
    pub component: &'static str,
    /// Hash of the code that it was compiled to, in hex.
    pub code: &'static str,
    /// The directory in which it was built.
    pub built_in: &'static str,
}

/// The engine with this name, if there was one when the program was built.
#[must_use]
pub fn engine(name: &str) -> Option<&'static PinnedEngine> {
    ENGINES.iter().find(|engine| engine.name == name)
}
