//! Verification against a home, a key, files and components.

use std::fs;

use base::{AgentName, ContentHash, Timestamp};
use receipts::{
    Energy, Issuer, Receipt, ReceiptArtifact, ReceiptComponent, SigningKey, Skill, Task, Tokens, VERSION,
    directory_hash,
};

use super::*;
use crate::receipt::ReceiptKey;

/// A home with a run, its artifact, its receipt, and its skill and component.
struct Place {
    directory: tempfile::TempDir,
    home: Home,
    key: SigningKey,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::at(directory.path().join("home"));
        home.create().unwrap();
        let key = ReceiptKey::new(home.config()).open().unwrap();
        let place = Self { directory, home, key };
        let run = RunId::parse("run_1").unwrap();
        fs::create_dir_all(place.home.artifacts(&run)).unwrap();
        fs::write(place.home.artifacts(&run).join("a.txt"), "61.5\n").unwrap();
        fs::create_dir(place.at("skill")).unwrap();
        fs::write(place.at("skill/SKILL.md"), "# Sums\n").unwrap();
        fs::write(place.at("tool.wasm"), "component").unwrap();
        fs::write(place.at("receipt.json"), place.signed(&place.key).text().unwrap()).unwrap();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn signed(&self, key: &SigningKey) -> SignedReceipt {
        let hash = |text: &str| ContentHash::of(text.as_bytes());
        let component = |hash, tool: &str| ReceiptComponent { hash, tools: vec![tool.to_owned()] };
        let files = toolbox::unpack(bundled::component("files").unwrap()).unwrap();
        let receipt = Receipt {
            version: VERSION,
            run_id: RunId::parse("run_1").unwrap(),
            agent: AgentName::default(),
            task: Task::of("t"),
            status: ReceiptOutcome::Completed,
            attempts: 1,
            seed: None,
            created_at: Timestamp::from_millis(1),
            started_at: None,
            completed_at: None,
            models: vec![],
            result: Some("61.5".into()),
            error: None,
            artifacts: vec![ReceiptArtifact { path: "a.txt".into(), bytes: 5, hash: hash("61.5\n") }],
            skill: Some(Skill { name: "sums".into(), hash: directory_hash(&self.at("skill")).unwrap() }),
            components: vec![component(hash("component"), "add"), component(ContentHash::of(&files), "read")],
            approvals: vec![],
            answers: vec![],
            hosts: vec![],
            unknown_outcomes: vec![],
            credentials: vec![],
            energy: Energy { millionths: 0 },
            tokens: Tokens { input: 0, output: 0 },
            cost_micro_usd: None,
            issuer: Issuer { key_id: key.public().id(), host_version: "0.1.0".into() },
        };
        SignedReceipt::sign(receipt, key).unwrap()
    }

    /// The receipt alone, without a home.
    fn alone(&self) -> VerifyRequest {
        VerifyRequest { file: self.at("receipt.json"), ..VerifyRequest::default() }
    }

    fn whole(&self) -> VerifyRequest {
        VerifyRequest {
            home: Some(self.home.clone()),
            skill: Some(self.at("skill")),
            components: vec![self.at("tool.wasm")],
            ..self.alone()
        }
    }
}

fn checked(request: &VerifyRequest) -> (Vec<&'static str>, Vec<&'static str>) {
    let verification = Verification::of(request).unwrap();
    let checked = verification.checked.iter().map(|checked| checked.what).collect();
    (checked, verification.not_checked.iter().map(|unchecked| unchecked.what).collect())
}

fn reason(request: &VerifyRequest) -> String {
    Verification::of(request).unwrap_err().reason
}

#[test]
fn what_was_compared_is_said_and_what_was_not() {
    let place = Place::new();
    let everything = vec!["signature", "key", "artifacts", "skill", "component", "component"];
    assert_eq!(checked(&place.whole()), (everything, vec![]));
    let left = vec!["key", "artifacts", "skill", "component"];
    assert_eq!(checked(&place.alone()), (vec!["signature", "component"], left));
    // If the home does not know the run, only its key counts, and only if it matches.
    let elsewhere = Home::at(place.at("elsewhere"));
    let request = VerifyRequest { home: Some(elsewhere.clone()), ..place.alone() };
    assert_eq!(checked(&request), checked(&place.alone()));
    fs::create_dir_all(elsewhere.config()).unwrap();
    fs::write(elsewhere.receipt_key(), "broken").unwrap();
    assert_eq!(checked(&request), checked(&place.alone()));
    fs::copy(place.home.receipt_key(), elsewhere.receipt_key()).unwrap();
    assert_eq!(checked(&request).0, ["signature", "key", "component"]);
}

#[test]
fn each_part_that_is_another_is_refused() {
    let place = Place::new();
    let artifacts = place.home.artifacts(&RunId::parse("run_1").unwrap());
    for (path, original, changed, said) in [
        (artifacts.join("a.txt"), "61.5\n", "61.6\n", "the artifact `a.txt` was changed"),
        (place.at("skill/SKILL.md"), "# Sums\n", "# sums\n", "the skill `sums` is another version"),
        (place.at("tool.wasm"), "component", "Component", "is none of those in the receipt"),
    ] {
        fs::write(&path, changed).unwrap();
        assert!(reason(&place.whole()).contains(said), "{}", reason(&place.whole()));
        fs::write(&path, original).unwrap();
        Verification::of(&place.whole()).unwrap();
    }
    fs::write(artifacts.join("extra.txt"), "x").unwrap();
    assert_eq!(Verification::of(&place.whole()).unwrap().other_files, ["extra.txt"]);
    fs::remove_dir_all(&artifacts).unwrap();
    assert!(reason(&place.whole()).contains("No such file"), "{}", reason(&place.whole()));
    let text = fs::read_to_string(place.at("receipt.json")).unwrap();
    fs::write(place.at("receipt.json"), text.replace("61.5", "71.5")).unwrap();
    assert!(reason(&place.alone()).contains("signature"));
}

#[test]
fn a_receipt_of_another_key_is_refused_where_it_can_be_told() {
    let place = Place::new();
    let thief = SigningKey::generate().unwrap();
    let request = VerifyRequest { file: place.at("stolen.json"), ..place.whole() };
    fs::write(&request.file, place.signed(&thief).text().unwrap()).unwrap();
    assert!(reason(&request).contains("signed with another key"));
    // Without the home only the signer's key is known.
    let alone = VerifyRequest { file: request.file.clone(), ..place.alone() };
    assert_eq!(Verification::of(&alone).unwrap().key, thief.public());
    let with = |key: &str| VerifyRequest { key: Some(key.to_owned()), ..alone.clone() };
    let ours = place.home.receipt_key();
    assert!(reason(&with(ours.to_str().unwrap())).contains("signed with another key"));
    assert!(reason(&with(&place.key.public().to_string())).contains("signed with another key"));
    assert_eq!(checked(&with(&thief.public().to_string())).0, ["signature", "key", "component"]);
    // A home that never signed anything cannot have signed this.
    fs::remove_file(ours).unwrap();
    assert!(reason(&place.whole()).contains("has no key"));
    fs::write(place.home.receipt_key(), "broken").unwrap();
    assert!(reason(&place.whole()).contains("holds no public key"));
}

#[test]
fn what_cannot_be_read_is_said() {
    let place = Place::new();
    for (request, code) in [
        (VerifyRequest { file: place.at("none"), ..place.alone() }, RefusalCode::NotFound),
        (VerifyRequest { file: place.at("skill"), ..place.alone() }, RefusalCode::Failed),
        (VerifyRequest { file: place.at("tool.wasm"), ..place.alone() }, RefusalCode::Failed),
        (VerifyRequest { key: Some("ed25519:12".into()), ..place.alone() }, RefusalCode::InvalidRequest),
        (VerifyRequest { skill: Some(place.at("none")), ..place.alone() }, RefusalCode::Failed),
        (VerifyRequest { components: vec![place.at("none")], ..place.alone() }, RefusalCode::NotFound),
        (VerifyRequest { artifacts: Some(place.at("none")), ..place.alone() }, RefusalCode::Failed),
    ] {
        assert_eq!(Verification::of(&request).unwrap_err().code, code, "{request:?}");
    }
}
