//! Which files of a workspace belong to a skill. All others are the run's own.

use crate::snapshot::{is_component, is_manifest};

/// Directories whose files belong to a skill.
const DIRECTORIES: [&str; 3] = ["assets", "references", "scripts"];
/// Directories that programs fill for themselves, wherever they are.
const DENIED: [&str; 4] = [".cache", ".git", ".local", "node_modules"];

/// Whether a file belongs to the skill whose directory its path is relative to. `policy.json` never does: only the host
/// writes a skill's permissions.
pub(super) fn is_part(path: &str) -> bool {
    if is_denied(path) {
        return false;
    }
    match path.split_once('/') {
        None => is_manifest(path) || is_component(path),
        Some((directory, _)) => DIRECTORIES.contains(&directory),
    }
}

/// Whether a file or directory is looked at: it is a part, or parts may be in it.
pub(super) fn is_looked_at(path: &str) -> bool {
    is_part(path) || DIRECTORIES.contains(&path)
}

fn is_denied(path: &str) -> bool {
    path.split('/').any(|part| DENIED.contains(&part)) || path.ends_with(".log")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists() {
        for path in [
            "SKILL.md",
            "skill.md",
            "a.wasm",
            "scripts/a",
            "references/a/b.md",
            "assets/.hidden",
            "scripts/policy.json",
        ] {
            assert!(is_part(path), "{path}");
        }
        for path in [
            "policy.json",
            "README.md",
            "a/SKILL.md",
            "a/b.wasm",
            "scripts",
            "scriptsa/x",
            "./scripts/a",
            "scripts/node_modules/a.js",
            "assets/a/.git/config",
            "references/.cache/x",
            "scripts/.local/x",
            "scripts/run.log",
            "",
        ] {
            assert!(!is_part(path), "{path}");
        }
        assert!(is_looked_at("scripts") && is_looked_at("scripts/a/b"));
        assert!(!is_looked_at("skills") && !is_looked_at("scripts/node_modules") && !is_looked_at("src"));
    }
}
