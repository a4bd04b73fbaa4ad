//! Figures about the language of comments that may only fall, file by file. The present ones are in `xtask/ratchet.txt`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::tidy::sources;

const FIGURES: &str = "xtask/ratchet.txt";
/// Free relative clauses: the noun is better.
const CLAUSES: [&str; 3] = ["what", "whatever", "whoever"];
/// Persons without a name: the actor or the passive is better.
const PERSONS: [&str; 2] = ["nobody", "somebody"];
/// Words of a doc comment that says little more than the name it stands above.
const SHORT: usize = 3;

/// The figures of a file, or of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    clauses: usize,
    persons: usize,
    short: usize,
    /// Lines of comments; not bounded.
    lines: usize,
}

impl Figures {
    fn of(text: &str) -> Self {
        let mut figures = Self::default();
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        for (index, line) in lines.iter().enumerate() {
            let Some(comment) = line.strip_prefix("//") else { continue };
            figures.lines += 1;
            let words = comment.split(|sign: char| !sign.is_alphanumeric()).filter(|word| !word.is_empty());
            let words: Vec<String> = words.map(str::to_ascii_lowercase).collect();
            let count = |known: &[&str]| words.iter().filter(|word| known.contains(&word.as_str())).count();
            figures.clauses += count(&CLAUSES);
            figures.persons += count(&PERSONS);
            let is_doc = |line: Option<&&str>| line.is_some_and(|line| line.starts_with("///"));
            let stands_alone =
                !is_doc(index.checked_sub(1).and_then(|before| lines.get(before))) && !is_doc(lines.get(index + 1));
            figures.short += usize::from(line.starts_with("///") && stands_alone && words.len() <= SHORT);
        }
        figures
    }

    fn exceeds(self, allowed: Self) -> bool {
        self.clauses > allowed.clauses || self.persons > allowed.persons || self.short > allowed.short
    }

    fn and(self, other: Self) -> Self {
        Self {
            clauses: self.clauses + other.clauses,
            persons: self.persons + other.persons,
            short: self.short + other.short,
            lines: self.lines + other.lines,
        }
    }
}

/// The files whose figures differ from the recorded ones, each with the remedy.
///
/// # Errors
/// If a file cannot be read.
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let recorded = recorded(root);
    let mut problems = Vec::new();
    for (name, now) in measured(root)? {
        let Figures { clauses, persons, short, .. } = recorded.get(&name).copied().unwrap_or_default();
        let allowed = Figures { lines: now.lines, clauses, persons, short };
        if now.exceeds(allowed) {
            problems.push(format!(
                "{name}: comments with {} of what/whatever/whoever (at most {clauses}), {} of nobody/somebody (at most \
                 {persons}), {} doc comments of {SHORT} words or fewer (at most {short}): name the noun",
                now.clauses, now.persons, now.short
            ));
        } else if now != allowed {
            problems.push(format!("{name}: its comments are better than `{FIGURES}` says: run `cargo xtask ratchet`"));
        }
    }
    Ok(problems)
}

/// Records figures that have fallen, and prints a table by crate.
///
/// # Errors
/// If a file cannot be read or written.
pub fn lower(root: &Path) -> Result<()> {
    let (before, mut text) = (recorded(root), String::new());
    let mut crates: BTreeMap<String, Figures> = BTreeMap::new();
    for (name, now) in measured(root)? {
        let place = name.split('/').take(2).collect::<Vec<_>>().join("/");
        let of_crate = crates.entry(place).or_default();
        *of_crate = of_crate.and(now);
        // Without a record there is nothing to fall from: the first one is taken as it is.
        let most = if before.is_empty() { now } else { before.get(&name).copied().unwrap_or_default() };
        let [clauses, persons, short] =
            [(now.clauses, most.clauses), (now.persons, most.persons), (now.short, most.short)]
                .map(|(now, most)| now.min(most));
        if clauses + persons + short > 0 {
            writeln!(text, "{name} {clauses} {persons} {short}")?;
        }
    }
    fs::write(root.join(FIGURES), text).with_context(|| format!("cannot write `{FIGURES}`"))?;
    println!("{:<28} {:>8} {:>8} {:>8} {:>8}", "", "lines", "clauses", "persons", "short");
    let all = crates.values().copied().fold(Figures::default(), Figures::and);
    for (name, Figures { clauses, persons, short, lines }) in crates.into_iter().chain([("all".to_owned(), all)]) {
        println!("{name:<28} {lines:>8} {clauses:>8} {persons:>8} {short:>8}");
    }
    let share = |count: usize| count as f64 * 1000.0 / all.lines.max(1) as f64;
    println!("in 1,000 lines of comments: {:.0} clauses, {:.1} persons", share(all.clauses), share(all.persons));
    Ok(())
}

fn measured(root: &Path) -> Result<BTreeMap<String, Figures>> {
    let read = |file: std::path::PathBuf| {
        let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read `{name}`"))?;
        Ok((name, Figures::of(&text)))
    };
    sources(root)?.into_iter().map(read).collect()
}

fn recorded(root: &Path) -> BTreeMap<String, Figures> {
    let text = fs::read_to_string(root.join(FIGURES)).unwrap_or_default();
    let read = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next()?.to_owned();
        let mut number = || words.next()?.parse().ok();
        let (clauses, persons, short) = (number()?, number()?, number()?);
        Some((name, Figures { clauses, persons, short, lines: 0 }))
    };
    text.lines().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_counted_and_code_is_not() {
        let text = "//! What it is, whatever\n/// Its name.\nlet what = 1;\n    // nobody, Somebody\n/// One two\n/// three.\nfn a() {}\n";
        assert_eq!(Figures::of(text), Figures { clauses: 2, persons: 2, short: 1, lines: 5 });
    }

    #[test]
    fn figures_may_fall_and_not_rise() {
        let directory = std::env::temp_dir().join(format!("motor-ratchet-{}", std::process::id()));
        let file = directory.join("host/a/src/lib.rs");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::create_dir_all(directory.join("xtask")).unwrap();
        let write = |text: &str| fs::write(&file, text).unwrap();
        write("//! What. What.\n");
        lower(&directory).unwrap();
        assert!(problems(&directory).unwrap().is_empty());
        write("//! What. What. What.\n");
        assert!(problems(&directory).unwrap()[0].contains("with 3 of"));
        lower(&directory).unwrap();
        assert_eq!(problems(&directory).unwrap().len(), 1, "recording does not raise it");
        write("//! What.\n");
        assert!(problems(&directory).unwrap()[0].contains("cargo xtask ratchet"));
        lower(&directory).unwrap();
        assert!(problems(&directory).unwrap().is_empty());
        write("//! What. What.\n");
        assert_eq!(problems(&directory).unwrap().len(), 1);
        fs::remove_dir_all(directory).unwrap();
    }
}
