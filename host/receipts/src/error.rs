//! Why a receipt is refused: each reason says exactly what does not fit.

use base::ContentHash;

use crate::PublicKey;
use crate::tree::TreeError;

/// Why a receipt, or something that it speaks of, is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The file is larger than a receipt can be.
    #[error("a receipt has at most {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The file is no receipt.
    #[error("this is no receipt: {reason}")]
    Form {
        /// The error and its position.
        reason: String,
    },
    /// It is of another version.
    #[error("this receipt has version {found}, and this version of `motor` reads version {known}")]
    Version {
        /// That of the receipt.
        found: u32,
        /// That of this program.
        known: u32,
    },
    /// The receipt is not in its canonical form.
    #[error("the receipt was changed after it was written: line {line} is not as it would be written")]
    Rewritten {
        /// The first line that differs, from 1.
        line: usize,
    },
    /// It names another key than the one beside it.
    #[error("the receipt says that another key signed it: `{named}` and not `{found}`")]
    KeyId {
        /// The id in the receipt.
        named: ContentHash,
        /// That of the key beside it.
        found: ContentHash,
    },
    /// The signature does not fit.
    #[error("the signature does not fit: the receipt was changed, or its key did not sign it")]
    Signature,
    /// The receipt was signed with another key.
    #[error("the receipt was signed with another key: `{found}` and not `{expected}`")]
    OtherKey {
        /// The key it should have been.
        expected: PublicKey,
        /// The key it was.
        found: PublicKey,
    },
    /// A file of the result is not there.
    #[error("the artifact `{path}` is missing")]
    ArtifactMissing {
        /// Path of the file.
        path: String,
    },
    /// A file of the result was changed.
    #[error("the artifact `{path}` was changed: it is `{found}` and was `{expected}`")]
    ArtifactChanged {
        /// Path of the file.
        path: String,
        /// The hash in the receipt.
        expected: ContentHash,
        /// That of the file, as far as it was read.
        found: ContentHash,
    },
    /// A file is named twice.
    #[error("the receipt names the artifact `{path}` twice")]
    ArtifactTwice {
        /// Path of the file.
        path: String,
    },
    /// The files of the result cannot be read.
    #[error("the artifacts cannot be read")]
    Artifacts(#[source] TreeError),
    /// The run used no skill.
    #[error("the receipt names no skill")]
    NoSkill,
    /// The skill is another version.
    #[error("the skill `{name}` is another version: it is `{found}` and was `{expected}`")]
    OtherSkill {
        /// Its name in the receipt.
        name: String,
        /// The hash in the receipt.
        expected: ContentHash,
        /// That of the directory.
        found: ContentHash,
    },
    /// The skill cannot be read.
    #[error("the skill cannot be read")]
    Skill(#[source] TreeError),
    /// The run did not use that component.
    #[error("the component `{found}` is none of those in the receipt")]
    OtherComponent {
        /// The hash of the file.
        found: ContentHash,
    },
}
