//! The files that a receipt names, compared with those that are present.
//!
//! Nothing is opened by a path out of a receipt: a directory is read, and the receipt's paths are looked up in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base::ContentHash;

use crate::directory::directory_hash;
use crate::tree::{FoundEntry, Odd, TreeError, sum, walk};
use crate::{ReceiptArtifact, SignedReceipt, VerifyError};

/// Files that a directory may hold beside the artifacts.
const MAX_OTHERS: u64 = 100_000;

/// The result of a comparison with a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactsReport {
    /// Artifacts that are as they were.
    pub verified: usize,
    /// Other files, by path: the receipt says nothing about them.
    pub others: Vec<String>,
}

/// Verifies that a directory holds every artifact, unchanged.
///
/// # Errors
/// The first that is missing or changed, or why it cannot be told.
pub fn artifacts_are(artifacts: &[ReceiptArtifact], directory: &Path) -> Result<ArtifactsReport, VerifyError> {
    let mut wanted = BTreeMap::new();
    for artifact in artifacts {
        if wanted.insert(artifact.path.as_str(), artifact).is_some() {
            return Err(VerifyError::ArtifactTwice { path: artifact.path.clone() });
        }
    }
    let verified = wanted.len();
    let mut others = BTreeSet::new();
    let most = MAX_OTHERS.saturating_add(2 * verified as u64);
    let none = |_: &str| false;
    let read = walk(directory, most, Odd::Ignored, none, |FoundEntry { path, mut file }| {
        let Some(artifact) = wanted.remove(path.as_str()) else {
            others.insert(path);
            return Ok(());
        };
        // One byte more than there should be tells a longer file.
        let found = sum(&mut file, artifact.bytes.saturating_add(1))
            .map_err(|source| VerifyError::Artifacts(TreeError::Io { path: path.clone(), source }))?;
        if (found.bytes, found.hash) == (artifact.bytes, artifact.hash) {
            return Ok(());
        }
        Err(VerifyError::ArtifactChanged { path, expected: artifact.hash, found: found.hash })
    });
    match (read, wanted.into_keys().next()) {
        (Err(error), _) => Err(error),
        (Ok(()), Some(path)) => Err(VerifyError::ArtifactMissing { path: path.to_owned() }),
        (Ok(()), None) => Ok(ArtifactsReport { verified, others: others.into_iter().collect() }),
    }
}

impl SignedReceipt {
    /// [`artifacts_are`] for the artifacts of this receipt.
    ///
    /// # Errors
    /// As there.
    pub fn artifacts_are(&self, directory: &Path) -> Result<ArtifactsReport, VerifyError> {
        artifacts_are(&self.receipt().artifacts, directory)
    }

    /// Verifies that a directory holds the skill in the version that was used.
    ///
    /// # Errors
    /// When it holds another, or the run used none.
    pub fn skill_is(&self, directory: &Path) -> Result<(), VerifyError> {
        let skill = self.receipt().skill.as_ref().ok_or(VerifyError::NoSkill)?;
        let found = directory_hash(directory).map_err(VerifyError::Skill)?;
        if found == skill.hash {
            return Ok(());
        }
        Err(VerifyError::OtherSkill { name: skill.name.clone(), expected: skill.hash, found })
    }

    /// Verifies that the run used the component with this hash, and gives the tools that it was called as.
    ///
    /// # Errors
    /// When it used no such component.
    pub fn used_component(&self, found: ContentHash) -> Result<&[String], VerifyError> {
        let component = self.receipt().components.iter().find(|component| component.hash == found);
        component.map(|component| component.tools.as_slice()).ok_or(VerifyError::OtherComponent { found })
    }
}

impl From<TreeError> for VerifyError {
    fn from(error: TreeError) -> Self {
        Self::Artifacts(error)
    }
}
