//! Citations: each `SPEC RUN-4` has a row in `docs/requirements.md`, each row there names files with tests, and each row
//! of `docs/threat-model.md` names tests that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::tidy::sources;

const DOCUMENT: &str = "docs/requirements.md";
const THREATS: &str = "docs/threat-model.md";
/// Written in halves, so that this file does not find itself.
const CITATION: (&str, &str) = ("SP", "EC ");

/// The citations without a row, the rows without tests, and the threats shown by tests that do not exist.
///
/// # Errors
/// If the document or a source cannot be read.
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let document = fs::read_to_string(root.join(DOCUMENT)).with_context(|| format!("cannot read `{DOCUMENT}`"))?;
    let rows: BTreeMap<&str, &str> = document.lines().filter_map(row).collect();
    let mut problems = Vec::new();
    for (id, shown_by) in &rows {
        let files: Vec<&str> = shown_by.split('`').skip(1).step_by(2).collect();
        if files.is_empty() && *shown_by != "not built" {
            problems.push(format!("{DOCUMENT}: {id} names no file with tests and is not `not built`"));
        }
        let lacking = files.into_iter().filter(|file| !has_tests(root, file));
        problems.extend(lacking.map(|file| format!("{DOCUMENT}: {id} names `{file}`, which has no tests")));
    }
    let threats = fs::read_to_string(root.join(THREATS)).with_context(|| format!("cannot read `{THREATS}`"))?;
    let mut missing: BTreeSet<&str> = threats.lines().flat_map(tests_of_row).collect();
    for file in sources(root)? {
        let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read `{name}`"))?;
        let unknown = cited(&text).into_iter().filter(|id| !rows.contains_key(id));
        problems.extend(unknown.map(|id| format!("{name}: {id} has no row in {DOCUMENT}")));
        missing.retain(|test| !text.contains(&format!("fn {test}(")));
    }
    problems.extend(missing.iter().map(|test| format!("{THREATS}: there is no test `{test}`")));
    Ok(problems)
}

/// The tests named in the last column of a row: identifiers of at least three words.
fn tests_of_row(line: &str) -> impl Iterator<Item = &str> {
    let shown_by = line.strip_suffix(" |").and_then(|line| line.rsplit(" | ").next()).unwrap_or_default();
    let quoted = shown_by.split('`').skip(1).step_by(2);
    quoted.filter(|name| {
        name.matches('_').count() > 1 && name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'))
    })
}

/// The id of a row and its last column.
fn row(line: &str) -> Option<(&str, &str)> {
    let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split(" | ").map(str::trim).collect();
    let [id, .., shown_by] = cells.as_slice() else { return None };
    is_id(id).then_some((*id, *shown_by))
}

fn is_id(word: &str) -> bool {
    word.split_once('-').is_some_and(|(area, number)| {
        !area.is_empty()
            && area.bytes().all(|byte| byte.is_ascii_uppercase())
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The ids that a text cites, as in `RUN-4, RUN-5 and DUR-1 to DUR-3` behind the word for the specification.
fn cited(text: &str) -> BTreeSet<&str> {
    let marker = format!("{}{}", CITATION.0, CITATION.1);
    let mut ids = BTreeSet::new();
    for list in text.split(&marker).skip(1) {
        for word in list.split([' ', ',', ';', '\n']) {
            // A bracket, a colon or a full stop ends the list.
            let bare = word.trim_end_matches([')', ':', '.', '`']);
            if is_id(bare) {
                ids.insert(bare);
            }
            let goes_on = is_id(word) || ["", "and", "to", "//", "///", "//!"].contains(&word);
            if !goes_on {
                break;
            }
        }
    }
    ids
}

/// Whether a file has tests, or the modules below it.
fn has_tests(root: &Path, file: &str) -> bool {
    let path = root.join(file);
    let holds = |path: &Path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        ["#[test]", "#[tokio::test", "proptest!"].iter().any(|mark| text.contains(mark))
    };
    let below =
        || fs::read_dir(path.with_extension("")).into_iter().flatten().flatten().any(|entry| holds(&entry.path()));
    path.is_file() && (holds(&path) || below())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_and_rows_are_read() {
        let text = format!(
            "//! A thing ({}{}RUN-4, DUR-1 to DUR-5 and\n//! NET-1: SHA-256). Not RUN-9.",
            CITATION.0, CITATION.1
        );
        assert_eq!(cited(&text), BTreeSet::from(["RUN-4", "DUR-1", "DUR-5", "NET-1"]));
        assert_eq!(row("| RUN-4 | It ends. | `a.rs`, `b.rs` |"), Some(("RUN-4", "`a.rs`, `b.rs`")));
        assert_eq!([row("| id | requirement | shown by |"), row("text")], [None, None]);
    }

    #[test]
    fn an_id_without_a_row_and_a_row_without_a_test_are_found() {
        let root = std::env::temp_dir().join(format!("motor-requirements-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("host/a/src/lib.rs", &format!("//! ({}{}RUN-1, RUN-2)\n#[test]\n", CITATION.0, CITATION.1));
        write("host/a/src/other.rs", "//! None here.\nfn a_bomb_is_bounded() {}\n");
        write(THREATS, "| a bomb | counted | `body/limit.rs` | `a_bomb_is_bounded` |\n");
        write(DOCUMENT, "| RUN-1 | One. | `host/a/src/lib.rs` |\n| RUN-3 | Three. | not built |\n");
        assert_eq!(problems(&root).unwrap(), ["host/a/src/lib.rs: RUN-2 has no row in docs/requirements.md"]);
        write(DOCUMENT, "| RUN-1 | One. | `host/a/src/other.rs` |\n| RUN-2 | Two. | soon |\n");
        assert_eq!(problems(&root).unwrap().len(), 2);
        write(THREATS, "| a bomb | counted | `body/limit.rs` | `a_bomb_is_bounded`, `a_drip_is_timed` |\n");
        assert!(problems(&root).unwrap().contains(&format!("{THREATS}: there is no test `a_drip_is_timed`")));
        fs::remove_dir_all(root).unwrap();
    }
}
