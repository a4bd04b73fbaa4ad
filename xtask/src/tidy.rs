//! Rules of the house that no compiler checks: small files, a first line that describes the file, no unfinished work.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::{ratchet, requirements};

/// Lines a file may have. Long before that it is two files.
const MAX_LINES: usize = 600;

/// Directories with sources of ours.
const SOURCES: [&str; 4] = ["host", "xtask", "guest-tools", "tests"];

/// The marks of unfinished work. Written in halves, so that this file does not find itself.
const UNFINISHED: [(&str, &str); 5] =
    [("todo", "!("), ("unimplemented", "!("), ("dbg", "!("), ("TO", "DO"), ("FIX", "ME")];

/// The line of a manifest that keeps `cargo test` from compiling the crate once more to look for doctests.
const NO_DOCTESTS: &str = "doctest = false";

/// The words after a fence that leave its text a doctest; none does, too.
const DOCTEST: [&str; 4] = ["rust", "no_run", "should_panic", "compile_fail"];

/// Checks every Rust file of the repository at `root`.
///
/// # Errors
/// With one line for each broken rule.
pub fn check(root: &Path) -> Result<()> {
    let files = sources(root)?;
    let mut broken = ratchet::problems(root)?;
    broken.extend(requirements::problems(root)?);
    for file in &files {
        let name = file.strip_prefix(root).unwrap_or(file).to_string_lossy().into_owned();
        let text = fs::read_to_string(file).with_context(|| format!("cannot read `{name}`"))?;
        let mut problems = problems(&name, &text);
        if let Some(line) = first_doctest(&text)
            && let Some(package) = file.ancestors().find(|directory| directory.join("Cargo.toml").is_file())
            && fs::read_to_string(package.join("Cargo.toml"))?.lines().any(|line| line == NO_DOCTESTS)
        {
            problems.push(format!("line {line}: a doctest that never runs: take `{NO_DOCTESTS}` out of the manifest"));
        }
        broken.extend(problems.into_iter().map(|problem| format!("{name}: {problem}")));
    }
    if !broken.is_empty() {
        bail!("{} of the house's rules are broken:\n{}", broken.len(), broken.join("\n"));
    }
    println!("{} files are tidy", files.len());
    Ok(())
}

/// Every Rust file of ours, in order.
pub fn sources(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for directory in SOURCES {
        collect(&root.join(directory), &mut files)?;
    }
    files.sort();
    Ok(files)
}

fn problems(name: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let lines = text.lines().count();
    if lines > MAX_LINES {
        problems.push(format!("{lines} lines, at most {MAX_LINES}: split it"));
    }
    if !text.starts_with("//!") {
        problems.push("the first line must say with `//!` what the file is".to_owned());
    }
    if Path::new(name).file_name().is_some_and(|file| file == "mod.rs") {
        problems.push("name it after its module: `x.rs` beside `x/`".to_owned());
    }
    for (index, line) in text.lines().enumerate() {
        for (start, end) in UNFINISHED {
            let word = format!("{start}{end}");
            if line.contains(&word) {
                problems.push(format!("line {}: `{word}`: finish it", index + 1));
            }
        }
    }
    problems
}

/// The line on which the first doctest begins.
fn first_doctest(text: &str) -> Option<usize> {
    let mut is_open = false;
    text.lines().zip(1..).find_map(|(line, number)| {
        let documentation = line.trim_start().strip_prefix("///").or(line.trim_start().strip_prefix("//!"))?;
        let words = documentation.trim_start().strip_prefix("```")?;
        is_open = !is_open;
        let is_doctest = words.trim().is_empty() || words.split(',').any(|word| DOCTEST.contains(&word.trim()));
        (is_open && is_doctest).then_some(number)
    })
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let Ok(entries) = fs::read_dir(directory) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        // Build directories carry this tag.
        let is_ours = !path.join("CACHEDIR.TAG").exists() && !path.ends_with("fixtures");
        if path.is_dir() && is_ours {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_untidy() {
        let check = |name: &str, text: &str, expected: usize| {
            assert_eq!(problems(name, text).len(), expected, "{name}: {text:.40}");
        };
        check("host/a/src/lib.rs", "//! A.\nfn main() {}\n", 0);
        check("host/a/src/lib.rs", "fn main() {}\n", 1);
        check("host/a/src/b/mod.rs", "//! A.\n", 1);
        check("host/a/src/lib.rs", &format!("//! A.\nfn a() {{ {}{}) }}\n", "todo", "!("), 1);
        check("host/a/src/lib.rs", &"//! A.\n".repeat(MAX_LINES), 0);
        check("host/a/src/lib.rs", &"//! A.\n".repeat(MAX_LINES + 1), 1);
    }

    #[test]
    fn finds_the_first_doctest() {
        let check = |text: &str, expected: Option<usize>| assert_eq!(first_doctest(text), expected, "{text}");
        check("//! A.\nfn main() {}\n", None);
        check("//! ```json\n//! {}\n//! ```\nfn main() {}\n", None);
        check("//! ```text\n//! a\n//! ```\n    /// ```\n    /// a();\n    /// ```\n", Some(4));
        check("/// ```compile_fail,E0277\n/// a();\n/// ```\n", Some(1));
        check("/// ```rust\n", Some(1));
        check("let fence = \"```\";\n", None);
    }
}
