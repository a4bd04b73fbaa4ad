//! The review of a skill for people (SPEC SKILL-9): the lines to read before anything else, then the changes, the skill
//! itself, its possible powers, its text, the objections, and the one thing to do next.
//!
//! Most of the text here is a stranger's. Text of several lines stands behind a bar that only this program draws.

use std::fmt::Write as _;

use skills::review::{FileKind, Hidden, SkillReview};
use skills::{Policy, SkillForm, SkillStatus};

use super::card::Tone;
use super::facts::{self, NOTHING};
use crate::output::{Palette, text};

/// Columns before the text of a line.
const LABEL: usize = 13;

mod reading;

pub(crate) use reading::{barred_text, risks};

/// The review in at most `columns`, for a skill that its reader calls `called`.
pub(crate) fn review(review: &SkillReview, called: &str, columns: usize, palette: Palette) -> String {
    let mut page = Page { text: String::new(), columns, palette };
    page.title(review);
    page.risks(&review.risks);
    page.changes(review);
    page.identity(review);
    page.unavailable(&review.unavailable);
    page.powers(review);
    page.text(review);
    page.mentions(review);
    page.hidden(&review.hidden);
    page.proposal(review);
    page.files(review);
    page.advisory(review);
    page.next(review, called);
    page.text
}

struct Page {
    text: String,
    columns: usize,
    palette: Palette,
}

impl Page {
    fn title(&mut self, review: &SkillReview) {
        let status = facts::tone(review.status).paint(self.palette, review.status.as_str());
        writeln!(self.text, "{}  {status}", self.palette.bold(review.name.as_str())).ok();
    }

    fn changes(&mut self, review: &SkillReview) {
        let Some(changes) = &review.changes else { return };
        self.heading(&format!("changed since {} was approved", changes.against.short()));
        for (tone, line) in changes.powers.iter().map(facts::power_change) {
            self.line(2, tone, &line);
        }
        for (tone, line) in changes.files.iter().map(facts::file_change) {
            self.line(2, tone, &line);
        }
        if changes.powers.is_empty() && changes.files.is_empty() {
            self.line(2, Tone::Calm, NOTHING);
        }
    }

    fn identity(&mut self, review: &SkillReview) {
        self.heading("what it is");
        self.field("place", &text::quoted(&review.place.to_string()));
        if let Some(written) = &review.written_name {
            let called =
                format!("`{}` by its author; `{}` is made of it, and used here", text::quoted(written), review.name);
            self.toned(Tone::Warning, "called", &called);
        }
        self.field("for", &text::quoted(&review.description));
        let form = match review.form {
            SkillForm::Directory => "directory",
            SkillForm::Archive => "archive",
            SkillForm::Component => "component",
        };
        let size: u64 = review.files.iter().map(|file| file.bytes).sum();
        let files = text::plural(review.files.len() as u64, "file");
        self.field("form", &format!("{form}, {files}, {}", text::bytes(size)));
        self.field("hash", &review.hash.hex());
        self.field("status", &format!("{}: {}", review.status.as_str(), text::quoted(&review.reason)));
        if let Some(provenance) = &review.provenance {
            let at = text::seconds(provenance.fetched_at);
            self.field("from", &format!("{}, {at}", text::quoted(&provenance.source)));
        }
        if let Some(made) = &review.extracted_from {
            let (changed, deleted) = (made.changed_files.len() as u64, made.deleted_files.len() as u64);
            let what = format!("{} changed, {} removed", text::plural(changed, "file"), text::plural(deleted, "file"));
            self.field("made by", &format!("{}, {}: {what}", made.run_id, text::seconds(made.at)));
        }
        for departure in &review.strict {
            self.toned(Tone::Warning, "standard", &text::quoted(departure));
        }
    }

    fn powers(&mut self, review: &SkillReview) {
        self.heading("what its components could do");
        if review.components.is_empty() {
            self.line(2, Tone::Calm, "nothing: it has none");
        }
        for component in &review.components {
            let (heading, lines) = facts::component(component);
            self.line(2, Tone::Plain, &heading);
            for (tone, line) in lines {
                self.line(4, tone, &line);
            }
        }
        if let Some(instructions) = &review.instructions {
            self.line(2, Tone::Plain, "and what it would tell the model");
            self.barred(4, Tone::Plain, instructions);
        }
    }

    fn mentions(&mut self, review: &SkillReview) {
        self.heading("what its text mentions");
        if review.credentials.is_empty() && review.domains.is_empty() {
            self.line(2, Tone::Plain, "no credential and no domain");
        }
        for credential in &review.credentials {
            self.toned(Tone::Warning, "credential", &facts::reference(credential));
        }
        for domain in &review.domains {
            self.field("domain", &facts::reference(domain));
            if !domain.shown.is_empty() {
                self.raw(LABEL + 2, &domain.shown);
            }
        }
    }

    fn hidden(&mut self, hidden: &[Hidden]) {
        if hidden.is_empty() {
            return;
        }
        self.heading("characters that are not what they look like");
        for Hidden { path, line, what, shown, count } in hidden {
            let line = if *line == 0 { String::new() } else { format!(", line {line}") };
            let times = if *count > 1 { format!(", {count} times") } else { String::new() };
            self.line(2, Tone::Alarm, &format!("{}{line}: {}{times}", text::quoted(path), text::quoted(what)));
            if !shown.is_empty() {
                self.barred(4, Tone::Alarm, shown);
            }
        }
    }

    fn proposal(&mut self, review: &SkillReview) {
        for claim in &review.claims {
            if review.claims.first() == Some(claim) {
                self.heading("what its `policy.json` says, and counts for nothing");
            }
            self.line(2, Tone::Alarm, &text::quoted(claim));
        }
        if let Some(proposal) = &review.proposal {
            self.heading("what its author asks for");
            self.policy(proposal);
        }
        let heading = match review.status {
            SkillStatus::Approved => "what its runs may do",
            _ => "what was granted before, and is kept for the next approval",
        };
        if let Some(policy) = &review.policy {
            self.heading(heading);
            self.policy(policy);
        }
    }

    fn policy(&mut self, policy: &Policy) {
        for (label, powers) in facts::powers(policy).into_iter().chain(facts::bounds(policy)) {
            let mut label = label;
            if powers.is_empty() {
                self.field(label, NOTHING);
            }
            for power in powers {
                self.field(label, &power);
                label = "";
            }
        }
    }

    fn files(&mut self, review: &SkillReview) {
        self.heading("files");
        for file in &review.files {
            let kind = match file.kind {
                FileKind::Text => "",
                FileKind::Binary => "  binary",
                FileKind::Component => "  component",
            };
            let executable = if file.mode & 0o111 == 0 { "" } else { "  executable" };
            let size = text::bytes(file.bytes);
            let line = format!("{}{kind}{executable}", text::quoted(&file.path));
            let mut before = format!("  {}  {size:>9}  ", file.hash.short());
            for row in text::rows(&line, self.columns.saturating_sub(before.len())) {
                writeln!(self.text, "{}{row}", self.palette.dim(&before)).ok();
                before = " ".repeat(before.len());
            }
        }
        if review.has_history {
            self.line(2, Tone::Calm, "`.git` is not part of the skill: not hashed, not given to runs");
        }
    }

    fn advisory(&mut self, review: &SkillReview) {
        let Some(advisory) = &review.advisory else { return };
        self.heading("what a read-only run thought of it");
        let (tone, verdict) = match advisory.passed {
            true => (Tone::Calm, "found nothing against it"),
            false => (Tone::Alarm, "did not let it pass"),
        };
        self.line(2, tone, &format!("{verdict} ({}, {})", advisory.run_id, text::seconds(advisory.at)));
        self.barred(2, Tone::Plain, advisory.text.trim());
    }

    fn next(&mut self, review: &SkillReview, called: &str) {
        let called = shell(called);
        let (command, what) = match review.status {
            SkillStatus::Approved if review.place.is_tool() => {
                (format!("motor act --tools {} TASK", review.name), "can call it")
            }
            SkillStatus::Approved => (format!("motor act --skill {called} TASK"), "works by it"),
            // A run did not let it pass: a review by people counts.
            SkillStatus::PendingReview => (format!("motor skill review {called}"), "is your own review of it"),
            SkillStatus::Reviewed | SkillStatus::NeedsReapproval => {
                (format!("motor skill approve {called}"), "shows what would be granted, and asks")
            }
        };
        // A command is copied, so it stays in one piece.
        let space = if "next: `` ".len() + command.len() + what.len() > self.columns { "\n  " } else { " " };
        let command = self.palette.cyan(&format!("`{command}`"));
        writeln!(self.text, "\n{}{space}{command}{space}{what}", self.palette.bold("next:")).ok();
    }

    fn heading(&mut self, words: &str) {
        writeln!(self.text, "\n{}", self.palette.bold(words)).ok();
    }

    fn field(&mut self, label: &str, line: &str) {
        self.toned(Tone::Plain, label, line);
    }

    fn toned(&mut self, tone: Tone, label: &str, line: &str) {
        let mut label = label;
        for row in text::wrapped(line, self.columns.saturating_sub(LABEL + 2)) {
            let row = tone.paint(self.palette, &row);
            writeln!(self.text, "  {}{row}", self.palette.dim(&format!("{label:<LABEL$}"))).ok();
            label = "";
        }
    }

    fn line(&mut self, indent: usize, tone: Tone, line: &str) {
        let mut before = indent;
        for row in text::wrapped(line, self.columns.saturating_sub(indent + 2)) {
            writeln!(self.text, "{:before$}{}", "", tone.paint(self.palette, &row)).ok();
            // The rest of a wrapped line is indented further.
            before = indent + 2;
        }
    }

    /// Lines of a stranger's.
    fn barred(&mut self, indent: usize, tone: Tone, lines: &str) {
        let bar = self.palette.dim("│");
        for row in text::wrapped(&text::revealed(lines), self.columns.saturating_sub(indent + 2)) {
            let line = format!("{:indent$}{bar} {}", "", tone.paint(self.palette, &row));
            writeln!(self.text, "{}", line.trim_end()).ok();
        }
    }
}

/// A word as a shell takes it.
pub(crate) fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    text::quoted(&format!("'{}'", word.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use base::ContentHash;
    use expect_test::expect;
    use serde_json::{Value, json};

    use super::*;

    fn fresh() -> Value {
        let hash = ContentHash::of(b"skill");
        json!({
            "name": "csv-analyst", "place": { "root": "home", "entry": "csv-analyst" }, "form": "directory",
            "description": "Analyses CSV files. Use it whenever somebody has a table and a question about what is in it.",
            "hash": hash, "status": "reviewed", "reason": "its review is done; the owner has not decided",
            "files": [{ "path": "SKILL.md", "bytes": 812, "hash": hash, "kind": "text", "mode": 0o644 }],
            "credentials": [], "domains": [], "hidden": [], "components": [],
        })
    }

    fn check(changes: Value, expected: &expect_test::Expect) {
        let mut record = fresh();
        let (Some(record_fields), Value::Object(changes)) = (record.as_object_mut(), changes) else {
            panic!("objects")
        };
        record_fields.extend(changes);
        let record: SkillReview = serde_json::from_value(record).unwrap();
        let page = review(&record, "csv-analyst", 80, Palette::new(false));
        assert!(page.lines().all(|line| text::width(line) <= 80), "{page}");
        expected.assert_eq(&page);
    }

    #[test]
    fn a_harmless_skill() {
        check(
            json!({}),
            &expect![[r#"
                csv-analyst  reviewed

                lines to read first
                  none of a known kind; that proves nothing, so read the text below

                what it is
                  place        csv-analyst
                  for          Analyses CSV files. Use it whenever somebody has a table and a
                               question about what is in it.
                  form         directory, 1 file, 812 B
                  hash         9c53c074d7ac6a2728b638ac1f376c5fa9eb8f71603017c3ea638c2fd40548df
                  status       reviewed: its review is done; the owner has not decided

                what its components could do
                  nothing: it has none

                what its text mentions
                  no credential and no domain

                files
                  9c53c074d7ac      812 B  SKILL.md

                next: `motor skill approve csv-analyst` shows what would be granted, and asks
            "#]],
        );
    }

    #[test]
    fn what_changed_stands_before_anything_else() {
        let hash = ContentHash::of(b"other");
        check(
            json!({
                "status": "needs_reapproval", "reason": "its bytes are not those that were approved",
                "changes": {
                    "against": hash,
                    "powers": [{ "added": true, "what": "imports network (`tools.wasm`)" },
                               { "added": true, "what": "mentions domain `collect.example` (scripts/run.js:12)" },
                               { "added": false, "what": "mentions credential `key`" }],
                    "files": [{ "path": "scripts/run.js", "kind": "changed", "lines": [3, 1] },
                              { "path": "tools.wasm", "kind": "changed" }, { "path": "old.md", "kind": "removed" },
                              { "path": "run.sh", "kind": "mode" }],
                },
                "components": [{ "path": "tools.wasm", "hash": hash, "capabilities": ["network", "clock"], "imports": [],
                    "tools": [{ "name": "add", "description": "Adds\nforged line", "parameters": { "properties": { "a": {} } } }] }],
                "domains": [{ "name": "collect.example", "at": ["scripts/run.js:12", "a:1", "b:2", "c:3"] }],
                "credentials": [{ "name": "api_key", "at": ["SKILL.md:4"] }],
                "hidden": [{ "path": "SKILL.md", "line": 7, "what": "U+202E RIGHT-TO-LEFT OVERRIDE",
                             "shown": "do <U+202E>not tell", "count": 2 }],
                "claims": ["it says that it is approved"],
                "proposal": { "domains": ["collect.example"], "tools": ["code", "fetch"] },
                "policy": { "tools": ["code"], "limits": { "fuel": 5_000_000 } },
                "strict": ["`license` is no text"],
                "advisory": { "runId": "run_1", "passed": false, "text": "It sends data away.\n\u{1b}[2Jfiles\n\nmore", "at": 1_000 },
                "provenance": { "source": "https://x.example/a.zip", "fetchedAt": 1_000, "contentHash": hash },
                "extractedFrom": { "runId": "run_2", "at": 2_000, "changedFiles": ["a"], "deletedFiles": [] },
            }),
            &expect![[r#"
                csv-analyst  needs_reapproval

                lines to read first
                  none of a known kind; that proves nothing, so read the text below

                changed since d9298a10d1b0 was approved
                  + imports network (`tools.wasm`)
                  + mentions domain `collect.example` (scripts/run.js:12)
                  - mentions credential `key`
                  changed scripts/run.js (+3 -1 lines)
                  changed tools.wasm
                  removed old.md
                  permissions of run.sh changed

                what it is
                  place        csv-analyst
                  for          Analyses CSV files. Use it whenever somebody has a table and a
                               question about what is in it.
                  form         directory, 1 file, 812 B
                  hash         9c53c074d7ac6a2728b638ac1f376c5fa9eb8f71603017c3ea638c2fd40548df
                  status       needs_reapproval: its bytes are not those that were approved
                  from         https://x.example/a.zip, 1970-01-01 00:00:01
                  made by      run_2, 1970-01-01 00:00:02: 1 file changed, 0 files removed
                  standard     `license` is no text

                what its components could do
                  tools.wasm (d9298a10d1b0)
                    can use network, clock
                    cannot see files, use credentials
                    tool add(a?): Adds forged line

                what its text mentions
                  credential   api_key in SKILL.md:4
                  domain       collect.example in scripts/run.js:12, a:1, b:2 and 1 more

                characters that are not what they look like
                  SKILL.md, line 7: U+202E RIGHT-TO-LEFT OVERRIDE, 2 times
                    │ do <U+202E>not tell

                what its `policy.json` says, and counts for nothing
                  it says that it is approved

                what its author asks for
                  tools        code
                               fetch
                  domains      collect.example
                  writes       nothing
                  credentials  nothing

                what was granted before, and is kept for the next approval
                  tools        code
                  domains      nothing
                  writes       nothing
                  credentials  nothing
                  limits       fuel at most 5,000,000

                files
                  9c53c074d7ac      812 B  SKILL.md

                what a read-only run thought of it
                  did not let it pass (run_1, 1970-01-01 00:00:01)
                  │ It sends data away.
                  │ <U+001B>[2Jfiles
                  │
                  │ more

                next: `motor skill approve csv-analyst` shows what would be granted, and asks
            "#]],
        );
    }

    #[test]
    fn a_written_name_and_a_repository_are_said() {
        let mut record = fresh();
        record["writtenName"] = json!("CSV Analyst");
        record["hasHistory"] = json!(true);
        let record: SkillReview = serde_json::from_value(record).unwrap();
        let page = review(&record, "csv-analyst", 80, Palette::new(false));
        assert!(page.contains("  called       `CSV Analyst` by its author; `csv-analyst` is made of it"), "{page}");
        assert!(page.contains("\n  `.git` is not part of the skill: not hashed, not given to runs\n"), "{page}");
    }

    #[test]
    fn names_are_quoted_for_a_shell() {
        for (word, expected) in [
            ("csv", "csv"),
            ("a/b.zip", "a/b.zip"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("$(x)", "'$(x)'"),
        ] {
            assert_eq!(shell(word), expected);
        }
    }
}
