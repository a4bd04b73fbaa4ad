//! The key file of development. It lies next to the data it protects, so it protects against no one who can read the
//! home.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use seal::Key;
use store::{Links, create_file, open_regular};
use zeroize::Zeroizing;

use super::secret;
use crate::VaultError;

const NAME: &str = "credentials.key";
/// Upper bound of the file's size: a key in hexadecimal and a line break are shorter.
const MAX_BYTES: u64 = 256;

/// Reads the key from the file.
pub(super) fn read(directory: &Path) -> Result<Key, VaultError> {
    let anew = "delete the credentials and set them again";
    let mut file = match open_regular(&directory.join(NAME), Links::Refused) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(VaultError::key(
                "their key file, `config/credentials.key` of the home, is missing",
                format!("restore it from a backup, or {anew}"),
            ));
        }
        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
            return Err(unusable(&format!("cannot be used: {error}"), anew));
        }
        Err(error) => return Err(unusable(&format!("cannot be opened: {error}"), "let the host's user read it")),
    };
    // Checks the opened file, not the path, which may change in between.
    let found = file.metadata().map_err(|error| unusable(&format!("cannot be read: {error}"), anew))?;
    if found.mode() & 0o077 != 0 {
        return Err(unusable("can be read by others", "run `chmod 600` on it, and consider the credentials known"));
    }
    let mut text = Zeroizing::new(String::with_capacity(256));
    let read = file.by_ref().take(MAX_BYTES).read_to_string(&mut text);
    read.ok().and_then(|_| secret::direct(text.trim())).ok_or_else(|| unusable("holds no key", anew))
}

/// Reads the key from the file, which is created if it is missing.
pub(super) fn read_or_create(directory: &Path) -> Result<Key, VaultError> {
    if !directory.join(NAME).exists() {
        let key = Key::random()?;
        let mut text = Zeroizing::new(String::with_capacity(2 * key.bytes().len() + 1));
        for byte in key.bytes() {
            use std::fmt::Write as _;
            // Writing to a string cannot fail.
            write!(text, "{byte:02x}").ok();
        }
        text.push('\n');
        create_file(directory, NAME, text.as_bytes())?;
    }
    // Read back, as every later host will read it.
    read(directory)
}

fn unusable(what: &str, remedy: &str) -> VaultError {
    VaultError::key(format!("their key file, `config/credentials.key` of the home, {what}"), remedy)
}
