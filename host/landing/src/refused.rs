//! Paths that are never landed, in any state.

/// Why a path is never landed.
pub fn why(path: &str) -> Option<&'static str> {
    path.split('/').find_map(|name| {
        let name = folded(name);
        if matches!(name.as_str(), ".git" | "git~1") {
            Some("it is in a repository's own directory")
        } else if name.starts_with(".motor-") {
            Some("it is a file of the host")
        } else {
            None
        }
    })
}

/// The name as file systems see it that also ignore dots and spaces at its end.
fn folded(name: &str) -> String {
    let name = layer::folded(name);
    // A stream of NTFS, `.git::$INDEX_ALLOCATION`, is the directory itself.
    let name = name.split(':').next().unwrap_or_default();
    name.trim_end_matches(['.', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_refused_under_every_name_that_a_file_system_takes_for_it() {
        for path in [
            ".git/config",
            "a/.GIT/hooks/x",
            ".g\u{200c}it/x",
            ".git./x",
            ".git /x",
            "GIT~1/x",
            ".git::$INDEX_ALLOCATION/x",
            ".git",
        ] {
            assert!(why(path).is_some(), "{path}");
        }
        for path in [".gitignore", ".github/x", "git/x", "a.git/x", ".gitkeep"] {
            assert_eq!(why(path), None, "{path}");
        }
    }
}
