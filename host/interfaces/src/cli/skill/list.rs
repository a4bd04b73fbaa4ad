//! `motor skill list`, `motor skill versions`: the skills and versions, and the status of each.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use agent::api::skills::SkillVersion;
use skills::{SkillStatus, SkillSummary};

use crate::output::{Palette, table::TextTable, text};
use crate::words::facts::{tone, unavailable};

/// Columns between two columns of text.
const GAP: usize = 2;
/// A longer name has a row of its own.
const MAX_NAME: usize = 26;

/// The skills in at most `columns`: the purpose of each, and why one may not run.
pub(super) fn skills(skills: &[SkillSummary], columns: usize, palette: Palette) -> String {
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    for name in skills.iter().filter_map(|skill| skill.name.as_deref()) {
        *named.entry(name).or_default() += 1;
    }
    // Skills that share a name are called by their places, which identify them wherever a skill is named.
    let called: Vec<String> = skills
        .iter()
        .map(|skill| match &skill.name {
            Some(name) if named.get(name.as_str()) == Some(&1) => text::quoted(name),
            _ => text::quoted(&skill.place.to_string()),
        })
        .collect();
    let fitting = called.iter().map(|name| text::width(name)).filter(|width| *width <= MAX_NAME);
    let name_room = fitting.chain([4]).max().unwrap_or_default();
    let status_room = skills.iter().map(|skill| skill.status.as_str().len()).chain([6]).max().unwrap_or_default();
    let before = name_room + GAP + status_room + GAP;
    let room = columns.saturating_sub(before).max(12);
    let mut page = format!("{:name_room$}  {:status_room$}  WHAT IT IS FOR\n", "NAME", "STATUS");
    for (skill, name) in skills.iter().zip(&called) {
        let wide = text::width(name);
        if wide > name_room {
            for row in text::rows(name, columns) {
                writeln!(page, "{row}").ok();
            }
            write!(page, "{:name_room$}", "").ok();
        } else {
            write!(page, "{name}{:1$}", "", name_room - wide).ok();
        }
        let status = tone(skill.status).paint(palette, &format!("{:status_room$}", skill.status.as_str()));
        let mut lines = Vec::new();
        if !skill.description.is_empty() {
            lines.push(text::brief(&text::revealed(&skill.description), room));
        }
        if let Some(written) = &skill.written_name {
            let called = text::wrapped(&format!("its author calls it `{}`", text::quoted(written)), room);
            lines.extend(called.iter().map(|row| palette.dim(row)));
        }
        if skill.status != SkillStatus::Approved {
            let reason = text::wrapped(&why(&skill.reason), room);
            lines.extend(reason.iter().map(|row| palette.dim(row)));
        }
        if !skill.unavailable.is_empty() {
            let missing = text::wrapped(&unavailable(skill), room);
            lines.extend(missing.iter().map(|row| palette.dim(row)));
        }
        let mut lines = lines.iter();
        let first = lines.next().map_or("", String::as_str);
        writeln!(page, "  {status}  {first}").ok();
        for line in lines {
            writeln!(page, "{:before$}{line}", "").ok();
        }
    }
    page
}

/// Why a skill may not run. The remedy is the same for all, and said once.
fn why(reason: &str) -> String {
    let reason = reason.split_once(": `motor ").map_or(reason, |(why, _)| why);
    text::quoted(reason)
}

/// The versions of one skill, newest first.
pub(super) fn versions(versions: &[SkillVersion], columns: usize) -> String {
    let mut table = TextTable::new(&["VERSION", "STATUS", "SINCE", "WHAT"]);
    for version in versions {
        let mut what = Vec::new();
        if version.in_place {
            what.push("lies there now".to_owned());
        }
        if !version.kept {
            what.push("not kept".to_owned());
        }
        if let Some(run) = &version.run_id {
            what.push(format!("made by {run}"));
        }
        if let Some(source) = &version.source {
            what.push(format!("from {}", text::quoted(source)));
        }
        let status = if version.superseded { "superseded" } else { version.status.as_str() };
        let since = text::seconds(version.approved_at.unwrap_or(version.changed_at));
        table.row([version.hash.short(), status.to_owned(), since, what.join(", ")]);
    }
    table.render(columns)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::{Value, json};

    use super::*;

    fn summary(name: Option<&str>, entry: &str, status: &str, description: &str, reason: &str) -> Value {
        json!({ "name": name, "place": { "root": "home", "entry": entry }, "status": status, "description": description,
                "reason": reason, "readable": name.is_some(), "conforms": true })
    }

    fn check(summaries: Value, columns: usize, expected: &expect_test::Expect) {
        let summaries: Vec<SkillSummary> = serde_json::from_value(summaries).unwrap();
        let page = skills(&summaries, columns, Palette::new(false));
        assert!(page.lines().all(|line| text::width(line) <= columns), "{page}");
        expected.assert_eq(&page);
    }

    #[test]
    fn each_says_what_it_is_for_and_why_it_may_not_run() {
        let long = "a-name-that-is-longer-than-there-is-room-for-in-a-column-of-names";
        check(
            json!([
                summary(
                    Some("csv-analyst"),
                    "csv-analyst",
                    "approved",
                    "Analyses CSV and JSON files with the code tool and writes a report",
                    "approved"
                ),
                summary(
                    Some("evil"),
                    "evil",
                    "needs_reapproval",
                    "Does\u{202e} things",
                    "its bytes are not those that were approved"
                ),
                summary(None, "broken", "needs_reapproval", "", "it has no `SKILL.md`"),
                summary(Some(long), long, "reviewed", "Something", "nobody has approved it"),
                summary(Some("twin"), "twin", "pending_review", "First", "a run made it"),
                summary(Some("twin"), "twin.zip", "approved", "Second", "approved"),
            ]),
            80,
            &expect![[r#"
                NAME         STATUS            WHAT IT IS FOR
                csv-analyst  approved          Analyses CSV and JSON files with the code tool a…
                evil         needs_reapproval  Does<U+202E> things
                                               its bytes are not those that were approved
                broken       needs_reapproval  it has no `SKILL.md`
                a-name-that-is-longer-than-there-is-room-for-in-a-column-of-names
                             reviewed          Something
                                               nobody has approved it
                twin         pending_review    First
                                               a run made it
                twin.zip     approved          Second
            "#]],
        );
    }

    #[test]
    fn missing_commands_are_said_of_approved_skills_too() {
        let mut one = summary(Some("a"), "a", "approved", "Makes a page", "approved");
        one["unavailable"] = json!(["npm", "npx", "pip", "Python scripts", "python3", "uv", "yarn"]);
        check(
            json!([one]),
            80,
            &expect![[r#"
                NAME  STATUS    WHAT IT IS FOR
                a     approved  Makes a page
                                will not work here: npm, npx, pip, Python scripts, python3 and 2
                                more
            "#]],
        );
    }

    #[test]
    fn a_name_that_was_written_otherwise_is_said() {
        let mut one = summary(Some("azure-cli"), "azure", "approved", "Runs things", "approved");
        one["writtenName"] = json!("Azure CLI");
        check(
            json!([one]),
            80,
            &expect![[r#"
                NAME       STATUS    WHAT IT IS FOR
                azure-cli  approved  Runs things
                                     its author calls it `Azure CLI`
            "#]],
        );
    }

    #[test]
    fn a_narrow_terminal_is_enough() {
        check(
            json!([summary(
                Some("a"),
                "a",
                "needs_reapproval",
                "Does a thing or two",
                "nobody has approved it: `motor skill review` it"
            )]),
            40,
            &expect![[r#"
                NAME  STATUS            WHAT IT IS FOR
                a     needs_reapproval  Does a thing or…
                                        nobody has
                                        approved it
            "#]],
        );
    }
}
