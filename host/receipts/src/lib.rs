//! Receipts: the origin of a result, signed by the host, verifiable without it (SPEC RUN-14).
//!
//! Architecture invariant: knows no run, no store, no home and no network, so that verifying needs nothing but this crate
//! and the files in question. A [`SignedReceipt`] exists only if the signature is valid, so its holder need not check.
//! It survives a receipt, an artifact, a skill or a component of which one byte is another; receipts made to be
//! hard to read (deep, huge, with a key twice); directories with links, pipes and names that are no text.

mod check;
mod directory;
mod error;
mod key;
mod receipt;
mod signed;
pub mod tree;

pub use check::{ArtifactsReport, artifacts_are};
pub use directory::{HISTORY, POLICY, directory_hash, files_hash, is_history};
pub use error::VerifyError;
pub use key::{KeyError, PublicKey, SigningKey};
pub use receipt::{
    Energy, Issuer, Receipt, ReceiptAction, ReceiptAnswer, ReceiptApproval, ReceiptArtifact, ReceiptComponent,
    ReceiptHost, ReceiptOutcome, SEEDED_VERSION, Skill, StatusCount, Task, Tokens, VERSION,
};
pub use signed::{MAX_BYTES, SignedReceipt};
