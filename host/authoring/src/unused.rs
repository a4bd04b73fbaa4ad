//! The capabilities that a component gives up: its toolchain imports them, for a library or for the types of another interface, and
//! the project's world does not ask for them. The host never grants them to it, and its review does not name them.

use wasm_encoder::{CustomSection, Section as _};

/// The custom section that the host reads: a capability on each line.
const SECTION: &str = "unused-capabilities";
/// The capabilities that toolchains import unasked, and the package of each.
const CAPABILITIES: [(&str, &str); 2] = [("clock", "wasi:clocks"), ("workspace", "wasi:filesystem")];

/// The component with the list of capabilities that the text of its world does not ask for.
pub(crate) fn give_up(mut component: Vec<u8>, world: &str) -> Vec<u8> {
    let unused =
        CAPABILITIES.iter().filter(|(_, package)| !asks_for(world, package)).map(|(capability, _)| *capability);
    let unused = unused.collect::<Vec<_>>().join("\n");
    if !unused.is_empty() {
        CustomSection { name: SECTION.into(), data: unused.into_bytes().into() }.append_to(&mut component);
    }
    component
}

/// Whether a world imports an interface of a package. One that includes a world of WASI asks for all of it.
fn asks_for(world: &str, package: &str) -> bool {
    let mut lines = world.lines().map(str::trim_start);
    lines.any(|line| {
        let imported = line.strip_prefix("import ").and_then(|rest| rest.trim_start().strip_prefix(package));
        imported.is_some_and(|rest| rest.starts_with('/')) || line.starts_with("include wasi:")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_gives_up_the_capabilities_that_it_does_not_import() {
        for (world, expected) in [
            ("world project {\n    import log;\n    // import wasi:clocks/wall-clock@0.2.12;\n}", "clock\nworkspace"),
            ("world project {\n    import wasi:clocks/wall-clock@0.2.12;\n}", "workspace"),
            (
                "world project {\n    import wasi:clocksmith/all@0.2.12;\n    import  wasi:filesystem/preopens@0.2.12;\n}",
                "clock",
            ),
            ("world project {\n    import wasi:clocks/wall-clock;\n    import wasi:filesystem/types;\n}", ""),
            ("world project {\n    include wasi:cli/imports@0.2.12;\n}", ""),
        ] {
            let component = give_up(Vec::new(), world);
            let section = [&[0, expected.len() as u8 + 20, 19][..], SECTION.as_bytes(), expected.as_bytes()].concat();
            assert_eq!(component, if expected.is_empty() { Vec::new() } else { section }, "{world}");
        }
    }
}
