//! Policies, changes to them, and the file for people.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use base::{ConsentRecord, ContentHash, Door, RunId, Timestamp};
use serde_json::json;

use super::*;
use crate::{SkillName, SkillPlace, SkillStatus, TrustRecord};

fn names(names: &[&str]) -> Vec<CredentialName> {
    names.iter().map(|name| CredentialName::parse(name).unwrap()).collect()
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn policy() -> Policy {
    Policy {
        domains: texts(&["api.example.com"]),
        writes: texts(&["api.example.com"]),
        tools: texts(&["code"]),
        required_credentials: names(&["key", "other"]),
        dependencies: BTreeMap::from([("left-pad".to_owned(), json!({ "version": "1.3.0" }))]),
        inputs: Some(json!({ "type": "object", "properties": { "to": { "type": "string" } } })),
        limits: BTreeMap::from([("fuel".to_owned(), 7)]),
    }
}

#[track_caller]
fn check(change: impl FnOnce(&mut Policy), expected: Result<(), &str>) {
    let mut policy = policy();
    change(&mut policy);
    match (policy.validate(&["fuel", "memory_bytes"]), expected) {
        (Ok(()), Ok(())) => {}
        (Err(SkillError::Invalid { reason }), Err(expected)) => assert!(reason.contains(expected), "{reason}"),
        (found, expected) => panic!("{found:?}, expected {expected:?}"),
    }
}

#[test]
fn policies_are_bounded() {
    check(|_| {}, Ok(()));
    check(|policy| *policy = Policy::default(), Ok(()));
    check(|policy| policy.domains = vec!["a".repeat(253); 200], Ok(()));
    check(|policy| policy.domains = vec!["a".to_owned(); 201], Err("201 entries"));
    check(|policy| policy.writes = vec!["a".repeat(254)], Err("254 bytes"));
    check(|policy| policy.tools = texts(&[""]), Err("is empty"));
    check(|policy| policy.tools = texts(&["a\nb"]), Err("`a\\nb`"));
    check(|policy| policy.domains = texts(&["a b"]), Err("spaces"));
    check(|policy| policy.domains = texts(&["a\u{1b}[2J"]), Err("`a\\u{1b}[2J`"));
    check(|policy| policy.required_credentials = names(&["key"; 201]), Err("`requiredCredentials` has 201"));
    check(|policy| policy.dependencies.extend([("x".into(), json!("y".repeat(70_000)))]), Err("`dependencies` has 7"));
    check(|policy| policy.dependencies.extend([("x\n".into(), json!(1))]), Err("control characters"));
    check(|policy| policy.limits.extend([("memory_bytes".into(), 1)]), Ok(()));
    check(
        |policy| policy.limits.extend([("memory".into(), 1)]),
        Err("there is no limit `memory`: there are `fuel`, `memory_bytes`"),
    );
    check(|policy| policy.inputs = Some(json!({ "type": "string" })), Err("\"type\": \"object\""));
    check(|policy| policy.inputs = Some(json!(true)), Err("\"type\": \"object\""));
}

#[test]
fn what_is_not_changed_stays() {
    assert_eq!(PolicyChange::default().apply(policy()), policy());
    let change: PolicyChange = serde_json::from_value(json!({
        "domains": [], "tools": ["bash"], "requiredCredentials": ["new"], "inputs": {}, "limits": { "fuel": 1 },
    }))
    .unwrap();
    let expected = Policy {
        domains: Vec::new(),
        tools: texts(&["bash"]),
        required_credentials: names(&["new"]),
        inputs: None,
        limits: BTreeMap::from([("fuel".to_owned(), 1)]),
        ..policy()
    };
    assert_eq!(change.apply(policy()), expected);
    let schema = json!({ "type": "object" });
    let change = PolicyChange { inputs: Some(schema.clone()), ..PolicyChange::default() };
    assert_eq!(change.apply(Policy::default()).inputs, Some(schema));
    assert!(serde_json::from_value::<PolicyChange>(json!({ "domain": ["x"] })).is_err());
}

fn record() -> TrustRecord {
    let at = Timestamp::from_millis(1_767_225_600_000);
    TrustRecord {
        name: SkillName::parse("pdf").unwrap(),
        place: SkillPlace { root: "home".into(), entry: "pdf".into() },
        hash: ContentHash::of(b"1"),
        modes: ContentHash::of(b"2"),
        status: SkillStatus::Approved,
        superseded: false,
        policy: Some(policy()),
        provenance: Some(SkillProvenance {
            source: "https://example.com/pdf.zip".into(),
            fetched_at: at,
            content_hash: ContentHash::of(b"3"),
        }),
        extracted_from: Some(ExtractedFrom {
            run_id: RunId::parse("run_1").unwrap(),
            at,
            changed_files: texts(&["SKILL.md"]),
            deleted_files: Vec::new(),
        }),
        consent: Some(ConsentRecord { given_by: "owner".into(), door: Door::Web, at }),
        reviewed_at: None,
        advisory: None,
        rejected: None,
        described: None,
        changed_at: at,
    }
}

#[test]
fn the_file_says_what_is_granted_and_no_secret() {
    let text = render(&record(), &names(&["key", "of-another-skill"]));
    let expected = json!({
        "schemaVersion": 1,
        "status": "approved",
        "domains": ["api.example.com"],
        "writes": ["api.example.com"],
        "tools": ["code"],
        "requiredCredentials": ["key", "other"],
        "credentials": { "key": "[set]" },
        "dependencies": { "left-pad": { "version": "1.3.0" } },
        "inputs": { "type": "object", "properties": { "to": { "type": "string" } } },
        "limits": { "fuel": 7 },
        "provenance": {
            "source": "https://example.com/pdf.zip",
            "fetchedAt": "2026-01-01T00:00:00.000Z",
            "contentHash": ContentHash::of(b"3"),
        },
        "extractedFrom": {
            "runId": "run_1",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "changedFiles": ["SKILL.md"],
            "deletedFiles": [],
        },
        "approvedBy": "owner",
        "approvedAt": "2026-01-01T00:00:00.000Z",
    });
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    assert_eq!(text, render(&record(), &names(&["key", "of-another-skill"])));
    // Read back, it proposes the same policy and approves nothing.
    let proposal = read_proposal(text.as_bytes());
    assert_eq!(proposal.policy, Some(policy()));
    assert!(proposal.claims.iter().any(|claim| claim.contains("`status` is `approved`")), "{:?}", proposal.claims);
    // Unless it is known to be the host's own.
    assert!(wrote(text.as_bytes(), &record()));
    assert!(wrote(render(&record(), &[]).as_bytes(), &record()));
    let others = [
        TrustRecord { status: SkillStatus::PendingReview, ..record() },
        TrustRecord { policy: None, ..record() },
        TrustRecord { consent: None, ..record() },
    ];
    for other in others {
        assert!(!wrote(text.as_bytes(), &other));
    }
    assert!(!wrote(text.replace("\"code\"", "\"bash\"").as_bytes(), &record()));
    assert!(!wrote(b"", &record()) && !wrote(b"[]", &record()));
}

#[test]
fn the_file_is_the_owners_alone_and_replaced_as_a_whole() {
    let root = tempfile::tempdir().unwrap();
    let skill = root.path().join("pdf");
    fs::create_dir(&skill).unwrap();
    write_file(&skill, "one").unwrap();
    fs::set_permissions(skill.join("policy.json"), fs::Permissions::from_mode(0o666)).unwrap();
    let before = fs::metadata(skill.join("policy.json")).unwrap().ino();
    write_file(&skill, "two").unwrap();
    let after = fs::metadata(skill.join("policy.json")).unwrap();
    assert_eq!(fs::read_to_string(skill.join("policy.json")).unwrap(), "two");
    assert_eq!(after.permissions().mode() & 0o7777, 0o600);
    assert_ne!(after.ino(), before);
    assert_eq!(fs::read_dir(&skill).unwrap().count(), 1, "no draft is left in it, at no time");
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
}

#[test]
fn no_link_is_followed() {
    let root = tempfile::tempdir().unwrap();
    let (skill, outside) = (root.path().join("pdf"), root.path().join("outside"));
    fs::create_dir(&skill).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("victim"), "as it was").unwrap();

    // The file is a link, the draft is one, or has a second name: their targets stay as they are.
    symlink(outside.join("victim"), skill.join("policy.json")).unwrap();
    let draft = root.path().join(format!(".motor-policy-{}", ContentHash::of(b"pdf").short()));
    symlink(outside.join("victim"), &draft).unwrap();
    write_file(&skill, "mine").unwrap();
    fs::hard_link(outside.join("victim"), &draft).unwrap();
    write_file(&skill, "mine").unwrap();
    assert_eq!(fs::read_to_string(outside.join("victim")).unwrap(), "as it was");
    assert_eq!(fs::symlink_metadata(skill.join("policy.json")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(skill.join("policy.json")).unwrap(), "mine");

    // The directory is a link, a file, or not there.
    symlink(&outside, root.path().join("link")).unwrap();
    fs::write(root.path().join("pdf.zip"), "zip").unwrap();
    for no_directory in ["link", "pdf.zip", "gone", ".."] {
        assert!(write_file(&root.path().join(no_directory), "mine").is_err(), "{no_directory}");
    }
    assert!(!outside.join("policy.json").exists());

    // Something stands in its place that no file replaces: an error, and no draft is left.
    fs::remove_file(skill.join("policy.json")).unwrap();
    fs::create_dir(skill.join("policy.json")).unwrap();
    let before = fs::read_dir(root.path()).unwrap().count();
    assert!(write_file(&skill, "mine").is_err());
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), before);
}
