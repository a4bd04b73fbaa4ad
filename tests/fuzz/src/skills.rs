//! The files of skills: `SKILL.md`, `policy.json`, archives.

use ::skills::manifest::{departures, read};
use ::skills::policy::read_proposal;
use ::skills::snapshot::{check_tree, read_archive};
use ::skills::{SkillBounds, SkillForm};

/// Bounds that small inputs reach.
const BOUNDS: SkillBounds = SkillBounds {
    file_bytes: 4 << 10,
    text_bytes: 16 << 10,
    component_bytes: 8 << 10,
    entries: 20,
    total_bytes: 32 << 10,
};

/// `SKILL.md`: the directory is the first line, the file is the rest.
pub(crate) fn manifest(bytes: &[u8]) {
    let (directory, file) = bytes.split_at(bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0));
    let directory = String::from_utf8_lossy(directory);
    let file = file.strip_prefix(b"\n").unwrap_or(file);
    let read = read(file, &directory);
    let departures = departures(file, &directory);
    if let Err(error) = read {
        assert!(!error.to_string().is_empty());
    }
    assert!(departures.iter().all(|departure| !departure.is_empty()));
}

/// `policy.json`: the policy in it is within bounds, and comes back from its own text.
pub(crate) fn policy(bytes: &[u8]) {
    let proposal = read_proposal(bytes);
    assert!(proposal.claims.iter().all(|claim| !claim.is_empty()));
    let Some(policy) = proposal.policy else { return };
    let names: Vec<&str> = policy.limits.keys().map(String::as_str).collect();
    policy.validate(&names).expect("a proposal is within the bounds of a policy");
    let written = serde_json::to_vec(&policy).expect("a policy is JSON");
    assert_eq!(read_proposal(&written).policy.as_ref(), Some(&policy));
}

/// Archives: an accepted one is a tree that obeys the rules.
pub(crate) fn archive(bytes: &[u8]) {
    match read_archive(bytes, &BOUNDS) {
        Ok(snapshot) => {
            let files = snapshot.files.iter().map(|(path, file)| (path.as_str(), file.bytes.len() as u64));
            check_tree(SkillForm::Archive, files, &BOUNDS).expect("an accepted archive obeys the rules");
            assert!(
                snapshot.files.keys().all(|path| !path.starts_with('/') && !path.split('/').any(|part| part == ".."))
            );
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
