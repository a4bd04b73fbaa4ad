//! Signed receipts, and every way in which they can differ from the signed content.

use std::fs;

use base::{AgentName, ConsentRecord, ContentHash, Door, RunId, Timestamp};
use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::{
    Energy, Issuer, ReceiptAction, ReceiptAnswer, ReceiptApproval, ReceiptArtifact, ReceiptComponent, ReceiptHost,
    ReceiptOutcome, Skill, StatusCount, Task, Tokens,
};

fn receipt(key: &SigningKey) -> Receipt {
    let hash = |text: &str| ContentHash::of(text.as_bytes());
    let consent = || ConsentRecord { given_by: "owner".into(), door: Door::Terminal, at: Timestamp::from_millis(3) };
    Receipt {
        version: VERSION,
        run_id: RunId::parse("run_1").unwrap(),
        agent: AgentName::default(),
        task: Task::of("add it up"),
        status: ReceiptOutcome::Completed,
        attempts: 1,
        seed: None,
        created_at: Timestamp::from_millis(1),
        started_at: Some(Timestamp::from_millis(2)),
        completed_at: Some(Timestamp::from_millis(9)),
        models: vec!["openai/test".into()],
        result: Some("It is ä: \"61.5\"\n".into()),
        error: None,
        artifacts: vec![ReceiptArtifact { path: "out/total.txt".into(), bytes: 5, hash: hash("61.5\n") }],
        skill: Some(Skill { name: "sums".into(), hash: hash("skill") }),
        components: vec![ReceiptComponent { hash: hash("component"), tools: vec!["read".into(), "write".into()] }],
        approvals: vec![ReceiptApproval {
            id: "apr_1".into(),
            actions: vec![ReceiptAction { summary: "POST to a.example".into(), hash: hash("action") }],
            granted: true,
            scope: Some("once".into()),
            consent: Some(consent()),
        }],
        answers: vec![ReceiptAnswer { question: "which one?".into(), consent: consent() }],
        hosts: vec![ReceiptHost {
            host: "a.example".into(),
            requests: 2,
            refused: 1,
            methods: vec!["GET".into()],
            statuses: vec![StatusCount { status: 200, count: 1 }],
        }],
        unknown_outcomes: vec!["step 3: `fetch`".into()],
        credentials: vec!["api_key".into()],
        energy: Energy { millionths: 110_000 },
        tokens: Tokens { input: 10, output: 5 },
        cost_micro_usd: Some(250_000),
        issuer: Issuer { key_id: key.public().id(), host_version: "0.1.0".into() },
    }
}

fn key() -> SigningKey {
    let der = "MC4CAQAwBQYDK2VwBCIEIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB";
    SigningKey::from_text(&format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----")).unwrap()
}

fn signed() -> (SignedReceipt, String) {
    let signed = SignedReceipt::sign(receipt(&key()), &key()).unwrap();
    let text = signed.text().unwrap();
    (signed, text)
}

fn refused(text: &str) -> VerifyError {
    SignedReceipt::read(text.as_bytes()).unwrap_err()
}

#[test]
fn the_file_is_stable() {
    let (signed, text) = signed();
    expect![[r#"
        {
          "key": "ed25519:8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c",
          "receipt": {
            "agent": "main",
            "answers": [
              {
                "consent": {
                  "at": 3,
                  "door": "terminal",
                  "givenBy": "owner"
                },
                "question": "which one?"
              }
            ],
            "approvals": [
              {
                "actions": [
                  {
                    "hash": "sha256:bd938c688f49b77c7fc537c6b9222e2c97ebddd63076b87f2feaec66fb9c05d0",
                    "summary": "POST to a.example"
                  }
                ],
                "consent": {
                  "at": 3,
                  "door": "terminal",
                  "givenBy": "owner"
                },
                "granted": true,
                "id": "apr_1",
                "scope": "once"
              }
            ],
            "artifacts": [
              {
                "bytes": 5,
                "hash": "sha256:612789e6b28d020c9364849432e4c6bc837cf0431d411ac324215f546232b904",
                "path": "out/total.txt"
              }
            ],
            "attempts": 1,
            "completedAt": 9,
            "components": [
              {
                "hash": "sha256:6985ca1f4daa5a584a28eae043a239cb96689af1337ea13afb63e00c2bf512fa",
                "tools": [
                  "read",
                  "write"
                ]
              }
            ],
            "costMicroUsd": 250000,
            "createdAt": 1,
            "credentials": [
              "api_key"
            ],
            "energy": {
              "millionths": 110000
            },
            "hosts": [
              {
                "host": "a.example",
                "methods": [
                  "GET"
                ],
                "refused": 1,
                "requests": 2,
                "statuses": [
                  {
                    "count": 1,
                    "status": 200
                  }
                ]
              }
            ],
            "issuer": {
              "hostVersion": "0.1.0",
              "keyId": "sha256:34750f98bd59fcfc946da45aaabe933be154a4b5094e1c4abf42866505f3c97e"
            },
            "models": [
              "openai/test"
            ],
            "result": "It is ä: \"61.5\"\n",
            "runId": "run_1",
            "skill": {
              "hash": "sha256:9c53c074d7ac6a2728b638ac1f376c5fa9eb8f71603017c3ea638c2fd40548df",
              "name": "sums"
            },
            "startedAt": 2,
            "status": "completed",
            "task": {
              "beginning": "add it up",
              "hash": "sha256:973af213fc9d97f15b19142c93fed9022a98554bbe5fe9ebbb1c39ef90365b88"
            },
            "tokens": {
              "input": 10,
              "output": 5
            },
            "unknownOutcomes": [
              "step 3: `fetch`"
            ],
            "version": 1
          },
          "signature": "24102357aac27d6248196e678312900cc20190a0b86826e64865cfdaa28f372a52ecc3b9ef8bc345cf12b133c821bfc3720179f3a9869d4bbf6e099c5ecbb609"
        }
    "#]].assert_eq(&text);
    assert_eq!(SignedReceipt::read(text.as_bytes()).unwrap(), signed);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(SignedReceipt::of_value(&value).unwrap(), signed);
    assert!(SignedReceipt::of_value(&value["receipt"]).is_err());
}

#[test]
fn what_is_unknown_is_left_out() {
    let bare = Receipt {
        started_at: None,
        completed_at: None,
        result: None,
        skill: None,
        cost_micro_usd: None,
        artifacts: vec![],
        ..receipt(&key())
    };
    let text = SignedReceipt::sign(bare.clone(), &key()).unwrap().text().unwrap();
    assert_eq!(SignedReceipt::read(text.as_bytes()).unwrap().receipt(), &bare);
    assert!(!text.contains("null"));
}

#[test]
fn every_single_changed_byte_is_refused() {
    let (_, text) = signed();
    let mut bytes = text.into_bytes();
    for at in 0..bytes.len() {
        for mask in [0x01, 0x20, 0x80, 0xff] {
            bytes[at] ^= mask;
            assert!(SignedReceipt::read(&bytes).is_err(), "byte {at} ^ {mask:#x}");
            bytes[at] ^= mask;
        }
    }
    assert!(SignedReceipt::read(&bytes).is_ok());
    for cut in 0..bytes.len() {
        assert!(SignedReceipt::read(&bytes[..cut]).is_err(), "the first {cut} bytes");
    }
}

#[test]
fn the_same_in_other_bytes_is_refused() {
    let (_, text) = signed();
    for (from, to) in [
        ("\"attempts\": 1", "\"attempts\":  1"),
        ("\"attempts\": 1", "\"attempts\": 1.0"),
        ("\"attempts\": 1", "\"attempts\": 1e0"),
        ("add it up", "add\\u0020it up"),
        ("ä", "\\u00e4"),
        ("\n}\n", "\n}"),
        ("\n}\n", "\n}\n\n"),
        ("{\n  \"key\"", "\u{feff}{\n  \"key\""),
        ("\n", "\r\n"),
        ("  \"receipt\": {\n", "  \"receipt\": {\n    \"error\": null,\n"),
        ("\"givenBy\": \"owner\"", "\"givenBy\": \"owner\",\n          \"note\": 1"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        let error = refused(&changed);
        assert!(matches!(error, VerifyError::Rewritten { .. } | VerifyError::Form { .. }), "{to:?}: {error}");
    }
    let sorted = text.replacen("\"attempts\": 1,\n", "", 1).replacen(
        "\"version\": 1\n",
        "\"version\": 1,\n    \"attempts\": 1\n",
        1,
    );
    assert!(matches!(refused(&sorted), VerifyError::Rewritten { .. }));
    assert!(
        matches!(refused(&text.replacen("  \"issuer\"", "   \"issuer\"", 1)), VerifyError::Rewritten { line } if line > 10)
    );
}

#[test]
fn what_is_changed_and_written_well_does_not_fit_the_signature() {
    let (signed, text) = signed();
    for (from, to) in
        [("\"attempts\": 1", "\"attempts\": 2"), ("61.5", "71.5"), ("\"granted\": true", "\"granted\": false")]
    {
        assert!(matches!(refused(&text.replacen(from, to, 1)), VerifyError::Signature), "{from}");
    }
    // Signed again with another key: the receipt names that key.
    let thief = SigningKey::generate().unwrap();
    let mut stolen = receipt(&key());
    assert!(matches!(SignedReceipt::sign(stolen.clone(), &thief), Err(VerifyError::KeyId { .. })));
    stolen.issuer.key_id = thief.public().id();
    let stolen = SignedReceipt::sign(stolen, &thief).unwrap();
    assert!(matches!(stolen.is_of(&key().public()), Err(VerifyError::OtherKey { .. })));
    assert!(signed.is_of(&key().public()).is_ok());
    // His key beside a signature of ours.
    let mixed = text.replace(&key().public().to_string(), &thief.public().to_string());
    assert!(matches!(refused(&mixed), VerifyError::KeyId { .. }));
    let mixed = mixed.replace(&key().public().id().to_string(), &thief.public().id().to_string());
    assert!(matches!(refused(&mixed), VerifyError::Signature));
}

#[test]
fn a_signature_for_something_else_is_none_for_a_receipt() {
    let (_, text) = signed();
    let body = canonical::text(&value(&receipt(&key())).unwrap());
    let other: String = key().sign(body.as_bytes()).into();
    let ours: String = key().sign(&message(&receipt(&key())).unwrap()).into();
    assert!(text.contains(&ours));
    assert!(matches!(refused(&text.replace(&ours, &other)), VerifyError::Signature));
}

#[test]
fn a_seed_has_a_form_of_its_own() {
    let with = |version, seed| Receipt { version, seed, ..receipt(&key()) };
    let signed = SignedReceipt::sign(with(SEEDED_VERSION, Some(7)), &key()).unwrap();
    let text = signed.text().unwrap();
    assert!(text.contains("\"seed\": 7") && text.contains("\"version\": 2"), "{text}");
    assert_eq!(SignedReceipt::read(text.as_bytes()).unwrap(), signed);
    for (version, seed) in [(VERSION, Some(7)), (SEEDED_VERSION, None)] {
        let error = SignedReceipt::sign(with(version, seed), &key()).unwrap_err();
        assert!(matches!(error, VerifyError::Version { found, .. } if found == version), "{error}");
    }
    assert!(matches!(refused(&text.replacen("\"seed\": 7", "\"seed\": 8", 1)), VerifyError::Signature));
}

#[test]
fn hostile_json_is_a_clear_error() {
    let (_, text) = signed();
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for (hostile, said) in [
        (String::new(), "this is no receipt: EOF"),
        ("[]".into(), "this is no receipt: "),
        (deep(100_000), "this is no receipt: "),
        (format!("{{\"receipt\": {}}}", deep(100_000)), "this is no receipt: "),
        (text.replacen("\"attempts\": 1,", "\"attempts\": 1,\n    \"attempts\": 1,", 1), "duplicate field `attempts`"),
        (text.replacen("  \"key\"", "  \"key\": \"x\",\n  \"key\"", 1), "this is no receipt: "),
        (text.replacen("\"version\": 1", "\"version\": 2", 1), "version 2"),
        (text.replacen("\"version\": 1", "\"version\": 3,\n \"more\": []", 1), "version 3"),
        (text.replacen("\"version\": 1", "\"version\": 1,\n \"more\": []", 1), "unknown field `more`"),
        (text.replacen("\"attempts\": 1", "\"attempts\": -1", 1), "this is no receipt: "),
        (text.replacen("\"run_1\"", "\"../etc\"", 1), "not a valid run id"),
        (format!("{{\"{}\": 1}}", "x".repeat(100_000)), "… at line 1"),
        (" ".repeat(MAX_BYTES + 1), "at most 16777216 bytes"),
    ] {
        let error = refused(&hostile).to_string();
        assert!(error.contains(said) && error.len() < 1_000, "{said}: {error}");
    }
    assert!(SignedReceipt::read(b"\xff\xfe").is_err());
    let huge = Receipt { result: Some("x".repeat(MAX_BYTES)), ..receipt(&key()) };
    assert!(matches!(SignedReceipt::sign(huge, &key()), Err(VerifyError::TooLarge { .. })));
}

/// A directory with the receipt's artifact.
fn result() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("out")).unwrap();
    fs::write(directory.path().join("out/total.txt"), "61.5\n").unwrap();
    directory
}

#[test]
fn artifacts_are_compared_byte_by_byte() {
    let (signed, _) = signed();
    let result = result();
    let file = result.path().join("out/total.txt");
    let report = signed.artifacts_are(result.path()).unwrap();
    assert_eq!((report.verified, report.others.len()), (1, 0));
    for changed in ["61.6\n", "61.5", "61.5\n\n", ""] {
        fs::write(&file, changed).unwrap();
        let error = signed.artifacts_are(result.path()).unwrap_err();
        assert!(matches!(&error, VerifyError::ArtifactChanged { path, .. } if path == "out/total.txt"), "{error}");
    }
    fs::remove_file(&file).unwrap();
    assert!(matches!(signed.artifacts_are(result.path()), Err(VerifyError::ArtifactMissing { .. })));
    // A link to the right content is not the file.
    let elsewhere = result.path().join("elsewhere");
    fs::write(&elsewhere, "61.5\n").unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    assert!(matches!(signed.artifacts_are(result.path()), Err(VerifyError::ArtifactMissing { .. })));
    fs::remove_file(&file).unwrap();
    fs::write(&file, "61.5\n").unwrap();
    assert_eq!(signed.artifacts_are(result.path()).unwrap().others, ["elsewhere"]);
    assert!(matches!(signed.artifacts_are(&result.path().join("none")), Err(VerifyError::Artifacts(_))));
}

#[test]
fn an_artifact_named_twice_is_refused() {
    let mut twice = receipt(&key());
    twice.artifacts.push(twice.artifacts[0].clone());
    let signed = SignedReceipt::sign(twice, &key()).unwrap();
    assert!(matches!(signed.artifacts_are(result().path()), Err(VerifyError::ArtifactTwice { .. })));
}

#[test]
fn skills_and_components_are_told_by_their_hashes() {
    let skill = tempfile::tempdir().unwrap();
    fs::write(skill.path().join("SKILL.md"), "# Sums\n").unwrap();
    let hash = crate::directory_hash(skill.path()).unwrap();
    let with = Receipt { skill: Some(Skill { name: "sums".into(), hash }), ..receipt(&key()) };
    let signed = SignedReceipt::sign(with, &key()).unwrap();
    signed.skill_is(skill.path()).unwrap();
    fs::write(skill.path().join("SKILL.md"), "# SumS\n").unwrap();
    assert!(matches!(signed.skill_is(skill.path()), Err(VerifyError::OtherSkill { .. })));
    assert!(matches!(signed.skill_is(&skill.path().join("SKILL.md")), Err(VerifyError::Skill(_))));
    let without = SignedReceipt::sign(Receipt { skill: None, ..receipt(&key()) }, &key()).unwrap();
    assert!(matches!(without.skill_is(skill.path()), Err(VerifyError::NoSkill)));

    assert_eq!(signed.used_component(ContentHash::of(b"component")).unwrap(), ["read", "write"]);
    assert!(matches!(signed.used_component(ContentHash::of(b"Component")), Err(VerifyError::OtherComponent { .. })));
}

proptest! {
    /// Any text of a model, a tool or a host: the receipt comes back unchanged.
    #[test]
    fn any_receipt_comes_back(
        texts in prop::collection::vec(any::<String>(), 4),
        numbers in prop::collection::vec(any::<u64>(), 4),
        status in any::<u16>(),
    ) {
        let mut said = receipt(&key());
        said.task = Task::of(&texts[0]);
        said.result = Some(texts[1].clone());
        said.artifacts[0].path.clone_from(&texts[2]);
        said.hosts[0].host.clone_from(&texts[3]);
        said.hosts[0].statuses[0] = StatusCount { status, count: numbers[0] };
        said.energy.millionths = numbers[1];
        said.cost_micro_usd = Some(numbers[2]);
        said.created_at = Timestamp::from_millis(numbers[3]);
        let signed = SignedReceipt::sign(said.clone(), &key()).unwrap();
        let text = signed.text().unwrap();
        let again = SignedReceipt::read(text.as_bytes()).unwrap();
        prop_assert_eq!(again.receipt(), &said);
    }

    #[test]
    fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(SignedReceipt::read(&bytes).is_err());
    }
}
