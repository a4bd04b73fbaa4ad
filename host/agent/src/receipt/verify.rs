//! Verifying a receipt without a host (SPEC RUN-14): from the file, and from the other parts that are available.
//!
//! Skipped comparisons are reported as clearly as the others: a signature alone proves that a receipt is whole, but not
//! its origin. A receipt that names a run of this home has to be signed with the key of this home.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use base::{Refusal, RefusalCode, RunId};
use bundled::PackedComponent;
use receipts::{MAX_BYTES, PublicKey, ReceiptOutcome, SignedReceipt, VerifyError, tree};
use schemars::JsonSchema;
use serde::Serialize;
use store::{Links, open_regular};

use crate::Home;

/// The largest component that is compared, in bytes.
const MAX_COMPONENT_BYTES: u64 = 1 << 30;
/// Maximum size of a public key file.
const MAX_KEY_BYTES: u64 = 4 << 10;

/// The parts to verify.
#[derive(Debug, Clone, Default)]
pub struct VerifyRequest {
    /// Path of the receipt's file.
    pub file: PathBuf,
    /// The home whose key and artifacts are compared if the run is one of its own.
    pub home: Option<Home>,
    /// The required signing key: `ed25519:…`, or a file that holds one.
    pub key: Option<String>,
    /// A directory with the artifacts to compare.
    pub artifacts: Option<PathBuf>,
    /// A directory with the skill to compare.
    pub skill: Option<PathBuf>,
    /// Files that have to be components of the run.
    pub components: Vec<PathBuf>,
}

/// A receipt that passed verification.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// The run it describes.
    pub run_id: RunId,
    /// The outcome of the run.
    pub status: ReceiptOutcome,
    /// The key that signed the receipt.
    #[schemars(with = "String")]
    pub key: PublicKey,
    /// Parts that were compared and match the receipt.
    pub checked: Vec<CheckedFile>,
    /// Parts named in the receipt that were not compared.
    pub not_checked: Vec<UncheckedFile>,
    /// Files next to the artifacts that are not in the receipt.
    pub other_files: Vec<String>,
}

/// A part that matches the receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckedFile {
    /// `signature`, `key`, `artifacts`, `skill` or `component`.
    pub what: &'static str,
    /// The other side of the comparison.
    pub detail: String,
}

/// A part that was not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UncheckedFile {
    /// The part, named as in [`CheckedFile`].
    pub what: &'static str,
    /// Reason it was not compared.
    pub detail: String,
    /// How to have it compared.
    pub remedy: &'static str,
}

impl Verification {
    /// Verifies a receipt. May block: it reads files.
    ///
    /// # Errors
    /// If a compared part does not match the receipt, or a named file cannot be read.
    pub fn of(request: &VerifyRequest) -> Result<Self, Refusal> {
        let bytes = read(&request.file, MAX_BYTES as u64 + 1)?;
        let signed = SignedReceipt::read(&bytes).map_err(refused)?;
        let receipt = signed.receipt();
        // The home only counts if it knows the run.
        let home = request.home.as_ref().filter(|home| home.run(&receipt.run_id).is_dir());
        let mut verification = Self {
            run_id: receipt.run_id.clone(),
            status: receipt.status,
            key: *signed.key(),
            checked: Vec::new(),
            not_checked: Vec::new(),
            other_files: Vec::new(),
        };
        verification.check("signature", "every byte is as the key signed it");
        verification.key(&signed, request, home)?;
        verification.artifacts(&signed, request, home)?;
        verification.skill(&signed, request)?;
        verification.components(&signed, request)?;
        Ok(verification)
    }

    fn key(&mut self, signed: &SignedReceipt, request: &VerifyRequest, home: Option<&Home>) -> Result<(), Refusal> {
        if let Some(key) = &request.key {
            signed.is_of(&named_key(key)?).map_err(refused)?;
            self.check("key", "it is the key that was given");
            return Ok(());
        }
        let own = match (home, &request.home) {
            (Some(home), _) => home_key(home)?,
            // The key of a home unrelated to the run may be missing or unreadable.
            (None, other) => other.as_ref().and_then(|home| home_key(home).ok().flatten()),
        };
        match (home, own) {
            (_, Some(own)) if signed.is_of(&own).is_ok() => self.check("key", "it is the key of this home"),
            (Some(_), Some(own)) => return Err(refused(VerifyError::OtherKey { expected: own, found: *signed.key() })),
            (Some(_), None) => {
                let reason = format!("run `{}` is one of this home, and this home has no key that signs", self.run_id);
                return Err(Refusal::new(RefusalCode::Failed, reason).with_remedy(
                    "pass `--key` when you know whose receipt it is; `motor receipt show` makes the key of the home",
                ));
            }
            (None, _) => self.not_checked.push(UncheckedFile {
                what: "key",
                detail: "anybody can sign: whose key it is was not compared".to_owned(),
                remedy: "pass `--key` with the host's `config/receipt.pub`",
            }),
        }
        Ok(())
    }

    fn artifacts(
        &mut self,
        signed: &SignedReceipt,
        request: &VerifyRequest,
        home: Option<&Home>,
    ) -> Result<(), Refusal> {
        let listed = signed.receipt().artifacts.len();
        let own = home.map(|home| home.artifacts(&self.run_id));
        // A run without artifacts has no directory.
        let own = own.filter(|directory| listed > 0 || directory.exists());
        match request.artifacts.clone().or(own) {
            Some(directory) => {
                let report = signed.artifacts_are(&directory).map_err(refused)?;
                self.check("artifacts", &format!("{} of {listed} in `{}`", report.verified, directory.display()));
                self.other_files = report.others;
            }
            None if listed == 0 => {}
            None => self.not_checked.push(UncheckedFile {
                what: "artifacts",
                detail: format!("{listed} of them"),
                remedy: "pass `--artifacts` with their directory",
            }),
        }
        Ok(())
    }

    fn skill(&mut self, signed: &SignedReceipt, request: &VerifyRequest) -> Result<(), Refusal> {
        match (&request.skill, &signed.receipt().skill) {
            (Some(directory), _) => {
                signed.skill_is(directory).map_err(refused)?;
                self.check("skill", &format!("it is the version in `{}`", directory.display()));
            }
            (None, Some(skill)) => self.not_checked.push(UncheckedFile {
                what: "skill",
                detail: format!("`{}`, {}", skill.name, skill.hash.short()),
                remedy: "pass `--skill` with its directory",
            }),
            (None, None) => {}
        }
        Ok(())
    }

    fn components(&mut self, signed: &SignedReceipt, request: &VerifyRequest) -> Result<(), Refusal> {
        let mut left: Vec<_> = signed.receipt().components.iter().collect();
        for path in &request.components {
            let read =
                open_regular(path, Links::Followed).and_then(|mut file| tree::sum(&mut file, MAX_COMPONENT_BYTES));
            let found = read.map_err(|error| unreadable(path, &error))?.hash;
            let tools = signed.used_component(found).map_err(refused)?.join(", ");
            self.check("component", &format!("`{}` was called as {tools}", path.display()));
            left.retain(|component| component.hash != found);
        }
        for PackedComponent { name, hash, .. } in bundled::components() {
            if let Some(at) = left.iter().position(|component| component.hash.as_bytes() == hash) {
                let tools = left.swap_remove(at).tools.join(", ");
                self.check("component", &format!("`{name}`, which comes with this program, was called as {tools}"));
            }
        }
        self.not_checked.extend(left.into_iter().map(|component| UncheckedFile {
            what: "component",
            detail: format!("{}, called as {}", component.hash.short(), component.tools.join(", ")),
            remedy: "pass `--component` with its file",
        }));
        Ok(())
    }

    fn check(&mut self, what: &'static str, detail: &str) {
        self.checked.push(CheckedFile { what, detail: detail.to_owned() });
    }
}

fn named_key(text: &str) -> Result<PublicKey, Refusal> {
    if let Ok(key) = text.parse() {
        return Ok(key);
    }
    let path = Path::new(text);
    if !path.exists() {
        let reason = "the key is neither `ed25519:` and 64 hex digits nor a file";
        return Err(Refusal::new(RefusalCode::InvalidRequest, reason)
            .with_remedy("pass what `config/receipt.pub` in the host's home holds, or that file"));
    }
    key_file(path)
}

fn home_key(home: &Home) -> Result<Option<PublicKey>, Refusal> {
    let path = home.receipt_key();
    if path.exists() { key_file(&path).map(Some) } else { Ok(None) }
}

fn key_file(path: &Path) -> Result<PublicKey, Refusal> {
    let bytes = read(path, MAX_KEY_BYTES)?;
    let key = std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok());
    key.ok_or_else(|| {
        Refusal::new(RefusalCode::Failed, format!("`{}` holds no public key", path.display()))
            .with_remedy("a public key is what `config/receipt.pub` in the host's home holds")
    })
}

fn read(path: &Path, most: u64) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    let read = open_regular(path, Links::Followed).and_then(|file| file.take(most).read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &io::Error) -> Refusal {
    let missing = error.kind() == io::ErrorKind::NotFound;
    let code = if missing { RefusalCode::NotFound } else { RefusalCode::Failed };
    Refusal::new(code, format!("cannot read `{}`: {error}", path.display()))
}

/// With every cause: the outermost message alone does not explain the failure.
fn refused(error: VerifyError) -> Refusal {
    let mut reason = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        reason = format!("{reason}: {error}");
        cause = error.source();
    }
    Refusal::new(RefusalCode::Failed, reason)
}

#[cfg(test)]
mod tests;
