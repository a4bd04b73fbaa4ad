//! Findings of the review in real skills, counted again by simple searches that know nothing of the table of patterns.

use std::collections::BTreeSet;

use super::skills;
use crate::review::{Risk, RiskKind, references_of, risks_of};
use crate::snapshot::{self, SkillBounds, Snapshot};

/// A simple search, and the kinds of findings that it has to be among.
struct Pattern {
    name: &'static str,
    kinds: &'static [RiskKind],
    finds: fn(&str) -> bool,
}

use RiskKind as R;

const PATTERNS: [Pattern; 8] = [
    Pattern { name: "decode and run", kinds: &[R::DecodeAndRun], finds: decodes_and_runs },
    Pattern { name: "download and run", kinds: &[R::DownloadAndRun], finds: downloads_and_runs },
    Pattern { name: "pipe to a shell", kinds: &[R::PipeToShell, R::DownloadAndRun, R::DecodeAndRun], finds: pipes },
    Pattern { name: "archive with a password", kinds: &[R::LockedArchive], finds: is_locked },
    Pattern { name: "address by number", kinds: &[R::RawAddress], finds: has_number },
    Pattern { name: "paste site", kinds: &[R::PasteSite], finds: has_paste_site },
    Pattern { name: "hidden characters", kinds: &[R::HiddenText], finds: is_hidden },
    Pattern { name: "check switched off", kinds: &[R::DisablesChecks], finds: disables },
];

fn has_any(line: &str, words: &[&str]) -> bool {
    words.iter().any(|word| line.contains(word))
}

/// Whether the part after the last `|` is a shell that reads its input.
fn ends_in_shell(line: &str) -> bool {
    let Some((_, last)) = line.rsplit_once('|') else { return false };
    let last = last.trim().trim_start_matches("sudo ").trim_end_matches(['`', '"', '\'', ')']);
    ["bash", "sh", "zsh", "bash -s", "sh -s", "bash -", "sh -"].contains(&last.trim())
}

fn decodes_and_runs(line: &str) -> bool {
    has_any(line, &["base64 -d", "base64 --decode", "base64 -D"]) && ends_in_shell(line)
}

fn downloads_and_runs(line: &str) -> bool {
    has_any(line, &["curl ", "wget "]) && line.contains("http") && ends_in_shell(line)
}

/// Only where a prompt or a command comes before: a table of names has pipes too.
fn pipes(line: &str) -> bool {
    has_any(line, &["echo ", "cat ", "printf ", "curl ", "wget "])
        && !line.trim_start().starts_with('|')
        && ends_in_shell(line)
}

fn is_locked(line: &str) -> bool {
    line.contains("unzip -P")
        || (has_any(line, &[".zip ", ".7z ", ".rar "]) && has_any(line, &["password: `", "password `"]))
}

fn has_number(line: &str) -> bool {
    line.split("://").skip(1).any(|rest| {
        let host: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        let quads: Vec<u8> = host.split('.').filter_map(|part| part.parse().ok()).collect();
        let follows = rest.get(host.len()..).and_then(|rest| rest.chars().next());
        let is_home = host.starts_with("10.")
            || host.starts_with("192.168.")
            || host.starts_with("127.")
            || host.starts_with("0.");
        let is_example = has_any(&host, &["192.0.2.", "198.51.100.", "203.0.113.", "1.2.3.4", "8.8.", "1.1.1.1"]);
        let is_home = is_home || (host.starts_with("172.") && quads.get(1).is_some_and(|part| (16..32).contains(part)));
        quads.len() == 4 && follows.is_none_or(|c| matches!(c, '/' | ':' | ' ' | '`')) && !is_home && !is_example
    })
}

fn has_paste_site(line: &str) -> bool {
    has_any(line, &["//glot.io", "//pastebin.com", "//webhook.site", "//rentry.co", "//transfer.sh", "//0x0.st"])
}

fn is_hidden(line: &str) -> bool {
    line.chars().any(
        |c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}' | '\u{e0020}'..='\u{e007e}'),
    )
}

fn disables(line: &str) -> bool {
    let lower = line.to_lowercase();
    has_any(
        &lower,
        &[
            "ignore previous instructions",
            "ignore all previous instructions",
            "disregard previous instructions",
            "--dangerously-skip-permissions",
            "spctl --master-disable",
            "xattr -d com.apple.quarantine",
            "disable gatekeeper",
            "disable antivirus",
            "disable windows defender",
            "setenforce 0",
        ],
    )
}

/// Lines as a shell joins them, with the raw text: hidden characters stay as they are.
fn raw_lines(snapshot: &Snapshot) -> Vec<String> {
    let texts = snapshot.files.values().map(|file| String::from_utf8_lossy(&file.bytes).into_owned());
    texts.flat_map(|text| text.replace("\\\n", " ").lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn simple_searches_find_nothing_that_the_review_does_not() {
    let Some((_root, directories)) = skills() else { return };
    let (mut missed, mut counts, mut quiet, mut reported) = (Vec::new(), [0; PATTERNS.len()], 0, Vec::new());
    for directory in &directories {
        let snapshot = snapshot::read(directory, &SkillBounds::default()).unwrap();
        let found = risks_of(&snapshot);
        let kinds: BTreeSet<RiskKind> = found.iter().map(|risk: &Risk| risk.kind).collect();
        let lines = raw_lines(&snapshot);
        let mut has_any = false;
        for (Pattern { name, kinds: expected, finds }, count) in PATTERNS.iter().zip(&mut counts) {
            let Some(line) = lines.iter().find(|line| finds(line)) else { continue };
            has_any = true;
            *count += 1;
            if !expected.iter().any(|kind| kinds.contains(kind)) {
                missed.push(format!("{name} in {}: {line}", directory.display()));
            }
        }
        if !has_any {
            quiet += 1;
            let worst = found.first().map(|risk| format!("{}: {:?} {}", directory.display(), risk.kind, risk.shown));
            reported.extend(worst);
        }
    }
    for (Pattern { name, .. }, count) in PATTERNS.iter().zip(counts) {
        eprintln!("{name}: {count} skills");
    }
    eprintln!("{} skills; {quiet} with none of these, of which {} are reported", directories.len(), reported.len());
    for line in &reported {
        eprintln!("  {line}");
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    assert!(reported.len() * 50 <= quiet, "{} of {quiet}", reported.len());
}

/// A name that no setting, counter or variable of a shell has.
fn is_plausible(name: &str) -> bool {
    let words = [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASS",
        "PASSWORD",
        "PWD",
        "CREDENTIAL",
        "AUTH",
        "USER",
        "ACCOUNT",
        "ID",
        "URL",
        "DSN",
        "URI",
    ];
    let upper = name.to_ascii_uppercase();
    upper.split(['_', '-']).any(|word| words.iter().any(|plausible| word.ends_with(plausible)))
}

#[test]
fn few_names_of_credentials_in_real_skills_are_wrong() {
    let Some((_root, directories)) = skills() else { return };
    let (mut all, mut wrong) = (0, Vec::new());
    for directory in &directories {
        let snapshot = snapshot::read(directory, &SkillBounds::default()).unwrap();
        for credential in references_of(&snapshot).0 {
            all += 1;
            if !is_plausible(&credential.name) {
                wrong.push(format!("{} in {}: {}", credential.name, directory.display(), credential.shown));
            }
        }
    }
    eprintln!("{} skills: {all} names of credentials, of which {} look wrong", directories.len(), wrong.len());
    assert!(all > 0 && wrong.len() * 20 <= all, "{}", wrong.join("\n"));
}
