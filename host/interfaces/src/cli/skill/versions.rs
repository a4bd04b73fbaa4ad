//! `motor skill versions`, `diff`, `rollback`: the earlier versions of a skill, and the way back (SPEC SKILL-12).

use std::fmt::Write as _;

use agent::api::skills::{
    DiffRequest, RollbackRequest, SkillDiff, SkillRollback, SkillVerification, SkillVersion, VerifySkills,
};
use base::{Refusal, RefusalCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use skills::review::{FileChange, FileChangeKind, FileDiff, FileSide, PowerChange};

use super::super::Done;
use super::super::consent::confirm;
use super::super::context::{Context, usage};
use super::list;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::diff::unified;
use crate::output::{Palette, text};
use crate::session::Session;
use crate::words::card::{Card, Tone};
use crate::words::facts::{self, NOTHING};
use crate::words::review::shell;

/// Runs the command `motor skill versions`.
pub(super) async fn versions(skill: &str, session: &mut Session, context: &Context) -> Done {
    let versions = all(skill, session).await?;
    if versions.is_empty() && !context.output.is_json() {
        context.output.say("no version of it is known: nobody has reviewed or approved it");
        return Ok(CommandExit::Ok);
    }
    context.answer(&versions, || list::versions(&versions, context.output.columns))?;
    Ok(CommandExit::Ok)
}

/// The known versions of a skill, newest first.
pub(super) async fn all(skill: &str, session: &mut Session) -> Result<Vec<SkillVersion>, Refusal> {
    let skill = utf8_percent_encode(skill, NON_ALPHANUMERIC);
    session.ask(&Call::get(format!("/v1/skills/versions?skill={skill}"))).await
}

/// Runs the command `motor skill diff`.
pub(super) async fn diff(request: &DiffRequest, session: &mut Session, context: &Context) -> Done {
    let diff: SkillDiff = session.ask(&Call::post("/v1/skills/diffs", request)?).await?;
    if diff.from == diff.to && !context.output.is_json() {
        context.output.say(&format!("nothing differs: both are {}", diff.from.short()));
        return Ok(CommandExit::Ok);
    }
    context.answer(&diff, || compared(&diff, context.output.columns, context.output.out))?;
    Ok(CommandExit::Ok)
}

/// Powers, then files with their lines.
pub(super) fn compared(diff: &SkillDiff, columns: usize, palette: Palette) -> String {
    let mut page =
        format!("{} {}\n", palette.bold(&diff.from.short()), palette.bold(&format!("→ {}", diff.to.short())));
    for (tone, line) in diff.powers.iter().map(facts::power_change) {
        for row in text::wrapped(&line, columns) {
            writeln!(page, "{}", tone.paint(palette, &row)).ok();
        }
    }
    if diff.powers.is_empty() {
        writeln!(page, "{}", palette.dim("what it could do or asks for did not change")).ok();
    }
    for file in &diff.files {
        let (_, heading) = facts::file_change(&FileChange { path: file.path.clone(), kind: file.kind, lines: None });
        writeln!(page, "\n{}", palette.bold(&heading)).ok();
        match &file.text {
            Some(text) => page.push_str(&unified(text, palette)),
            None => writeln!(page, "{}", palette.dim(&sides(file))).unwrap_or_default(),
        }
    }
    page
}

/// The two sides of a file without text.
fn sides(file: &FileDiff) -> String {
    let side = |side: &Option<FileSide>| match side {
        None => "not there".to_owned(),
        Some(side) if file.kind == FileChangeKind::Mode => format!("{:o}", side.mode),
        Some(side) => format!("{}, {}", text::bytes(side.bytes), side.hash.short()),
    };
    format!("{} → {}", side(&file.before), side(&file.after))
}

/// Runs the command `motor skill rollback`.
pub(super) async fn rollback(skill: String, to: Option<&str>, session: &mut Session, context: &Context) -> Done {
    let versions = all(&skill, session).await?;
    let target = target(&versions, to, &skill)?;
    let asked = VerifySkills { skill: Some(skill.clone()) };
    let verified: Vec<SkillVerification> = session.ask(&Call::post("/v1/skills/verifications", &asked)?).await?;
    let card = match verified.first().filter(|verified| verified.hash.is_none()) {
        Some(broken) => unreadable_card(&skill, target, &broken.reason),
        None => {
            // The comparison is with the present files, be they a version or not; the diff is read the other way round.
            let request = DiffRequest { skill: skill.clone(), from: Some(target.hash.hex()), to: None };
            let diff: SkillDiff = session.ask(&Call::post("/v1/skills/diffs", &request)?).await?;
            rollback_card(&skill, target, diff)
        }
    };
    let word = confirm(&card, context).await?;
    let request = RollbackRequest { skill: skill.clone(), to: Some(target.hash.hex()) };
    let back: SkillRollback = session.ask(&Call::post("/v1/skills/rollbacks", &request)?.with(word)).await?;
    context.answer(&back, || {
        let aside = back.put_aside.as_deref().map(|path| {
            format!("\nits unreadable files are kept at {}; remove them when you need them no more", text::quoted(path))
        });
        let (hash, status) = (target.hash.short(), back.skill.status);
        format!("{} is {hash} again; it is {status}{}", text::quoted(&skill), aside.unwrap_or_default())
    })?;
    Ok(CommandExit::Ok)
}

/// The version meant: the one whose hash begins so, once approved or proposed by a run; otherwise the one approved last
/// that is not the present one.
fn target<'a>(versions: &'a [SkillVersion], to: Option<&str>, skill: &str) -> Result<&'a SkillVersion, Refusal> {
    let remedy = format!("`motor skill versions {}` shows them", shell(skill));
    let refused = |reason: String| Refusal::new(RefusalCode::NotFound, reason).with_remedy(&remedy);
    let kept = versions.iter().filter(|version| version.kept);
    let Some(prefix) = to else {
        return kept
            .filter(|version| version.approved_at.is_some() && !version.in_place)
            .max_by_key(|version| version.approved_at)
            .ok_or_else(|| refused("there is no other version that was approved".to_owned()));
    };
    let prefix = prefix.trim_start_matches("sha256:").to_ascii_lowercase();
    let is_known =
        |version: &&SkillVersion| version.approved_at.is_some() || (version.run_id.is_some() && !version.superseded);
    let mut meant = kept.filter(is_known).filter(|version| version.hash.hex().starts_with(&prefix));
    match (meant.next(), meant.next()) {
        (Some(version), None) => Ok(version),
        (Some(_), Some(_)) => Err(usage(format!("several versions begin with `{}`", text::quoted(&prefix)), remedy)),
        (None, _) => Err(refused(format!("no approved version that is kept begins with `{}`", text::quoted(&prefix)))),
    }
}

fn rollback_card(skill: &str, target: &SkillVersion, diff: SkillDiff) -> Card {
    let mut card = Card::new(format!("go back to another version of the skill `{}`?", text::quoted(skill)));
    let powers = diff.powers.into_iter().map(|power| PowerChange { added: !power.added, ..power });
    let files = diff.files.into_iter().map(|file| {
        let kind = match file.kind {
            FileChangeKind::Added => FileChangeKind::Removed,
            FileChangeKind::Removed => FileChangeKind::Added,
            kind => kind,
        };
        FileChange { path: file.path, kind, lines: None }
    });
    let mut powers: Vec<PowerChange> = powers.collect();
    powers.sort_by_key(|power| !power.added);
    let mut label = "changes";
    let powers = powers.iter().map(facts::power_change);
    for (tone, line) in powers.chain(files.map(|file| facts::file_change(&file))) {
        card = card.toned(tone, std::mem::take(&mut label), line);
    }
    if !label.is_empty() {
        card = card.toned(Tone::Calm, label, NOTHING);
    }
    origin(card, target)
}

/// The question about a skill whose files cannot be read: there is nothing to compare with.
fn unreadable_card(skill: &str, target: &SkillVersion, reason: &str) -> Card {
    let card = Card::new(format!("replace the unreadable skill `{}` by another version?", text::quoted(skill)))
        .toned(Tone::Warning, "unreadable", text::quoted(reason))
        .with("means", "its present files are put aside and kept, and that version is put in place as a whole");
    origin(card, target)
}

fn origin(mut card: Card, target: &SkillVersion) -> Card {
    if let Some(at) = target.approved_at {
        card = card.with("approved", text::seconds(at));
    } else if let Some(run) = &target.run_id {
        card = card.toned(Tone::Warning, "made by", format!("{run}; it then waits for your review"));
    }
    card.with("hash", target.hash.hex())
}

#[cfg(test)]
mod tests {
    use base::{ContentHash, Timestamp};
    use expect_test::expect;
    use serde_json::json;
    use skills::SkillStatus;

    use super::*;

    fn version(of: &[u8], approved: Option<i64>, in_place: bool, kept: bool) -> SkillVersion {
        SkillVersion {
            hash: ContentHash::of(of),
            status: SkillStatus::Approved,
            superseded: !in_place,
            in_place,
            kept,
            approved_at: approved.map(|at| Timestamp::from_millis(at as _)),
            source: None,
            run_id: None,
            changed_at: Timestamp::from_millis(1_000),
        }
    }

    #[test]
    fn the_version_to_go_back_to() {
        let versions = [
            version(b"now", Some(4_000), true, true),
            version(b"lost", Some(3_500), false, false),
            version(b"before", Some(3_000), false, true),
            version(b"oldest", Some(1_000), false, true),
            version(b"never", None, false, true),
        ];
        let hex = |of: &[u8]| ContentHash::of(of).hex();
        let check = |to: Option<&str>, expected: Result<&[u8], &str>| match (target(&versions, to, "x"), expected) {
            (Ok(version), Ok(of)) => assert_eq!(version.hash, ContentHash::of(of), "{to:?}"),
            (Err(refusal), Err(says)) => assert!(refusal.reason.contains(says), "{to:?}: {}", refusal.reason),
            (got, expected) => panic!("{to:?}: {got:?}, not {expected:?}"),
        };
        check(None, Ok(b"before"));
        check(Some(&hex(b"oldest")[..8]), Ok(b"oldest"));
        check(Some(&format!("sha256:{}", hex(b"before").to_uppercase())), Ok(b"before"));
        check(Some(&hex(b"now")), Ok(b"now"));
        for none in [hex(b"lost"), hex(b"never"), "zz".to_owned()] {
            check(Some(&none), Err("no approved version"));
        }
        check(Some(""), Err("several"));
        assert!(target(&versions[..2], None, "x").is_err());
    }

    #[test]
    fn powers_stand_before_lines_and_lines_stay_lines() {
        let diff: SkillDiff = serde_json::from_value(json!({
            "from": ContentHash::of(b"a"), "to": ContentHash::of(b"b"),
            "powers": [{ "added": true, "what": "imports network (`tools.wasm`)" }, { "added": false, "what": "reads `key`" }],
            "files": [
                { "path": "run.js", "kind": "changed", "text": "--- run.js\n+++ run.js\n@@ -1 +1 @@\n-old\n+\tnew\u{1b}[2J\u{202e}\n same\n" },
                { "path": "tools.wasm", "kind": "added",
                  "after": { "bytes": 2048, "hash": ContentHash::of(b"c"), "mode": 0o644 } },
                { "path": "run.sh", "kind": "mode",
                  "before": { "bytes": 1, "hash": ContentHash::of(b"d"), "mode": 0o644 },
                  "after": { "bytes": 1, "hash": ContentHash::of(b"d"), "mode": 0o755 } },
            ],
        }))
        .unwrap();
        expect![[r#"
            ca978112ca1b → 3e23e8160039
            + imports network (`tools.wasm`)
            - reads `key`

            changed run.js
            @@ -1 +1 @@
            -old
            +    new<U+001B>[2J<U+202E>
             same

            added tools.wasm
            not there → 2.0 KiB, 2e7d2c03a950

            permissions of run.sh changed
            644 → 755
        "#]]
        .assert_eq(&compared(&diff, 80, Palette::new(false)));
        assert!(compared(&diff, 80, Palette::new(true)).contains("\u{1b}[32m+    new<U+001B>[2J<U+202E>\u{1b}[0m"));
    }
}
