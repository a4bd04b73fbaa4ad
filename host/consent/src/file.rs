//! The file that the token lies in, `config/owner.token` of the home: the token itself, or one that is sealed.
//!
//! A program that can read it in plain is the owner, as far as the host can tell. So a file that others can read is not used, and
//! its content is read within bounds: another program may have written it.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use base::{ContentHash, Secret};
use store::{Links, open_regular};
use zeroize::Zeroizing;

use crate::seal::SealedToken;
use crate::{ConsentError, OwnerPassphrase, OwnerToken};

/// Its name in the home's directory `config`.
pub const FILE_NAME: &str = "owner.token";
/// The most bytes that are read of it. A sealed one has about 500.
pub const MAX_FILE_BYTES: usize = 4 << 10;

const RESTORE: &str = "restore it from a backup; one that was never sealed may be deleted instead: the next host makes a \
                       new token";

/// The content of the file.
#[derive(Debug, Clone)]
pub struct TokenFile(TokenContent);

#[derive(Debug, Clone)]
enum TokenContent {
    Plain(OwnerToken),
    Sealed(SealedToken),
}

impl TokenFile {
    /// One with the token in plain.
    #[must_use]
    pub fn plain(token: OwnerToken) -> Self {
        Self(TokenContent::Plain(token))
    }

    /// One with the token sealed. Takes a tenth of a second.
    ///
    /// # Errors
    /// When the system has no randomness or no memory.
    pub fn sealed(token: &OwnerToken, passphrase: &OwnerPassphrase) -> Result<Self, ConsentError> {
        Ok(Self(TokenContent::Sealed(SealedToken::seal(token, passphrase)?)))
    }

    /// Reads the file of a home. None when there is none.
    ///
    /// # Errors
    /// When it cannot be read, others can read it, or it holds no token.
    pub fn read(directory: &Path) -> Result<Option<Self>, ConsentError> {
        let mut file = match open_regular(&directory.join(FILE_NAME), Links::Refused) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
                return Err(unusable(format!("cannot be used: {error}"), RESTORE));
            }
            Err(error) => return Err(unusable(format!("cannot be opened: {error}"), "let its owner read it")),
        };
        // The file that was opened is the file that is judged.
        let found = file.metadata().map_err(|error| unusable(format!("cannot be read: {error}"), RESTORE))?;
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Err(unusable("belongs to another user", RESTORE));
        }
        if found.mode() & 0o077 != 0 {
            let remedy = "run `chmod 600` on it, then `motor owner rotate`: others may know the token";
            return Err(unusable("can be read or written by other users", remedy));
        }
        let mut text = Zeroizing::new(String::with_capacity(MAX_FILE_BYTES + 1));
        let most = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX);
        let read = file.by_ref().take(most + 1).read_to_string(&mut text);
        read.map_err(|error| unusable(format!("cannot be read: {error}"), RESTORE))?;
        Self::parse(&text).map(Some)
    }

    /// Parses the content of the file.
    ///
    /// # Errors
    /// If it is not a token, plain or sealed.
    pub fn parse(text: &str) -> Result<Self, ConsentError> {
        if text.len() > MAX_FILE_BYTES {
            return Err(unusable("is too long", RESTORE));
        }
        if let Some(token) = OwnerToken::parse(text) {
            return Ok(Self(TokenContent::Plain(token)));
        }
        // The parser's own message would quote the content.
        serde_json::from_str(text)
            .map(|sealed| Self(TokenContent::Sealed(sealed)))
            .map_err(|_| unusable("holds no token", RESTORE))
    }

    /// The content of the file, as text.
    #[must_use]
    pub fn text(&self) -> Secret<String> {
        let mut text = match &self.0 {
            TokenContent::Plain(token) => token.expose().to_owned(),
            // Numbers and strings always serialise.
            TokenContent::Sealed(sealed) => serde_json::to_string_pretty(sealed).unwrap_or_default(),
        };
        text.push('\n');
        Secret::new(text)
    }

    /// The hash of the token in it. That of a sealed one is as the file says, until it is opened.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        match &self.0 {
            TokenContent::Plain(token) => token.hash(),
            TokenContent::Sealed(sealed) => sealed.hash(),
        }
    }

    /// Whether it takes a passphrase.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        matches!(self.0, TokenContent::Sealed(_))
    }

    /// The token; `passphrase` is asked when it is sealed. Takes a tenth of a second then.
    ///
    /// # Errors
    /// When the passphrase is not the one, or the file is damaged.
    pub fn open(
        self,
        passphrase: impl FnOnce() -> Result<Secret<String>, ConsentError>,
    ) -> Result<OwnerToken, ConsentError> {
        match self.0 {
            TokenContent::Plain(token) => Ok(token),
            TokenContent::Sealed(sealed) => sealed.open(&passphrase()?),
        }
    }
}

fn unusable(reason: impl Into<String>, remedy: &'static str) -> ConsentError {
    ConsentError::File { reason: reason.into(), remedy }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn write(directory: &Path, text: &str, mode: u32) {
        let path = directory.join(FILE_NAME);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        assert!(TokenFile::read(directory.path()).unwrap().is_none());
        let token = OwnerToken::random().unwrap();
        let passphrase = || Secret::new("correct horse battery".to_owned());
        let sealed = TokenFile::sealed(&token, &OwnerPassphrase::new(passphrase()).unwrap()).unwrap();
        for (file, is_sealed) in [(TokenFile::plain(token.clone()), false), (sealed, true)] {
            write(directory.path(), file.text().expose(), 0o600);
            let read = TokenFile::read(directory.path()).unwrap().unwrap();
            assert_eq!((read.is_sealed(), read.hash()), (is_sealed, token.hash()));
            let opened = read.open(|| if is_sealed { Ok(passphrase()) } else { panic!("asked for nothing") });
            assert_eq!(opened.unwrap().expose(), token.expose());
        }
    }

    #[test]
    fn files_that_are_none_are_refused_without_a_word_of_them() {
        let directory = tempfile::tempdir().unwrap();
        let token = OwnerToken::random().unwrap();
        let long = " ".repeat(MAX_FILE_BYTES) + token.expose();
        let cut = &token.expose()[..40];
        for (text, mode, expected) in [
            ("", 0o600, "holds no token"),
            (cut, 0o600, "holds no token"),
            (r#"{"version":1}"#, 0o600, "holds no token"),
            (&long, 0o600, "too long"),
            (token.expose(), 0o640, "other users"),
            (token.expose(), 0o602, "other users"),
        ] {
            write(directory.path(), text, mode);
            let error = TokenFile::read(directory.path()).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains(&token.expose()[12..40]), "{error}");
        }
        fs::remove_file(directory.path().join(FILE_NAME)).unwrap();
        fs::create_dir(directory.path().join(FILE_NAME)).unwrap();
        assert!(TokenFile::read(directory.path()).is_err());
    }

    #[test]
    fn a_file_of_the_most_bytes_is_read_and_a_longer_one_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let token = OwnerToken::random().unwrap();
        for (bytes, is_read) in [(MAX_FILE_BYTES, true), (MAX_FILE_BYTES + 1, false)] {
            write(directory.path(), &format!("{:<bytes$}", token.expose()), 0o600);
            assert_eq!(TokenFile::read(directory.path()).is_ok(), is_read, "{bytes}");
        }
    }

    #[test]
    fn the_remedy_depends_on_why_a_file_cannot_be_opened() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join(FILE_NAME)).unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        for (config, is_restored) in [(directory.path(), true), (file.as_path(), false)] {
            let Err(ConsentError::File { remedy, .. }) = TokenFile::read(config) else { panic!("{config:?}") };
            assert_eq!(remedy == RESTORE, is_restored, "{config:?}");
        }
    }
}
