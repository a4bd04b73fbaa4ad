//! The capabilities that a component gives up: its toolchain imports them, for a library or for the types of another interface, and
//! the project's world does not ask for them. The host never grants them to it, and its review does not name them.

use wasm_encoder::{CustomSection, Section as _};

/// The custom section that the host reads: a capability on each line.
const SECTION: &str = "unused-capabilities";
/// The capabilities that toolchains import unasked, and the package of each.
const CAPABILITIES: [(&str, &str); 2] = [("clock", "wasi:clocks/"), ("workspace", "wasi:filesystem/")];

/// The component with the list of capabilities that the text of its world offers in comments, and does not ask for. One that is not
/// mentioned at all is kept: projects of earlier versions have it unasked.
pub(crate) fn give_up(mut component: Vec<u8>, world: &str) -> Vec<u8> {
    let unused = CAPABILITIES.iter().filter(|(_, package)| world.contains(package) && !asks_for(world, package));
    let unused = unused.map(|(capability, _)| *capability).collect::<Vec<_>>().join("\n");
    if !unused.is_empty() {
        CustomSection { name: SECTION.into(), data: unused.into_bytes().into() }.append_to(&mut component);
    }
    component
}

/// Whether a world names a package outside of its comments, or includes another world, which may.
fn asks_for(world: &str, package: &str) -> bool {
    let mut lines = world.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code));
    lines.any(|line| line.contains(package) || line.contains("include "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_gives_up_the_capabilities_that_it_does_not_import() {
        for (world, expected) in [
            (
                "world p {\n    import log;\n    // import wasi:clocks/a;\n    // import wasi:filesystem/b;\n}",
                "clock\nworkspace",
            ),
            ("world p {\n    import wasi:clocks/wall-clock@0.2.12;\n    // import wasi:filesystem/b;\n}", "workspace"),
            (
                "/// See wasi:clocks/a.\nworld p { import\twasi:filesystem/b; import wasi:clocksmith/all@0.2.12; }",
                "clock",
            ),
            ("world p { import wasi:clocks/wall-clock; @since(version = 0.2.0) import wasi:filesystem/types; }", ""),
            ("world p {\n    include wasi:cli/imports@0.2.12;\n    // import wasi:clocks/a;\n}", ""),
            ("world p {\n    import log;\n}", ""),
        ] {
            let component = give_up(Vec::new(), world);
            let section = [&[0, expected.len() as u8 + 20, 19][..], SECTION.as_bytes(), expected.as_bytes()].concat();
            assert_eq!(component, if expected.is_empty() { Vec::new() } else { section }, "{world}");
        }
    }
}
