//! The key that signs the receipts of a home: `config/receipt.key`, and the public `config/receipt.pub` next to it.
//!
//! It is made for the first receipt, and never again: if an existing key is lost or cannot be read, the request is
//! refused. Another key would sign in the name of the same home, and there would be no explanation why old receipts no
//! longer verify.

use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use base::{Refusal, RefusalCode};
use parking_lot::Mutex;
use receipts::{PublicKey, SigningKey};
use store::{Links, create_file, open_regular};
use zeroize::Zeroizing;

const PRIVATE_KEY: &str = "receipt.key";
pub(crate) const PUBLIC_KEY: &str = "receipt.pub";
/// Maximum size of a key file: a key, its armour and the warning are smaller.
const MAX_BYTES: u64 = 4 << 10;

/// Opens the key, one caller at a time: two that make it at once would conflict.
#[derive(Debug, Clone)]
pub(crate) struct ReceiptKey {
    directory: PathBuf,
    turn: Arc<Mutex<()>>,
}

/// The key of a home that has one.
struct ExistingKey {
    key: SigningKey,
    /// Whether the public half lies beside it.
    is_published: bool,
}

impl ReceiptKey {
    /// The key in that directory. Nothing is read or made yet.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, turn: Arc::default() }
    }

    /// The key, which is made if there never was one.
    pub fn open(&self) -> Result<SigningKey, Refusal> {
        // The lock protects no data that a panic could leave half-changed.
        let _turn = self.turn.lock();
        match self.existing()? {
            Some(ExistingKey { key, is_published: true }) => Ok(key),
            Some(ExistingKey { key, is_published: false }) => {
                self.publish(&key)?;
                Ok(key)
            }
            None => {
                let key = SigningKey::generate().map_err(|error| broken(PRIVATE_KEY, &error.to_string()))?;
                let text = key.to_text().map_err(|error| broken(PRIVATE_KEY, &error.to_string()))?;
                create_file(&self.directory, PRIVATE_KEY, text.as_bytes())?;
                self.publish(&key)?;
                // Read back as every later host will read it.
                let text = self.read(PRIVATE_KEY)?.ok_or_else(|| broken(PRIVATE_KEY, "is gone"))?;
                private(&text)
            }
        }
    }

    /// The public half of the key, as [`ReceiptKey::open`] would use it. `None` if there never was one. Makes nothing.
    pub fn check(&self) -> Result<Option<PublicKey>, Refusal> {
        let _turn = self.turn.lock();
        Ok(self.existing()?.map(|existing| existing.key.public()))
    }

    fn existing(&self) -> Result<Option<ExistingKey>, Refusal> {
        match (self.read(PRIVATE_KEY)?, self.read(PUBLIC_KEY)?) {
            (None, None) => Ok(None),
            (Some(text), None) => Ok(Some(ExistingKey { key: private(&text)?, is_published: false })),
            (Some(text), Some(public)) => {
                let key = private(&text)?;
                let public = public.trim().parse::<PublicKey>();
                let public = public.map_err(|error| broken(PUBLIC_KEY, &format!("is broken: {error}")))?;
                if public != key.public() {
                    return Err(broken(PUBLIC_KEY, "belongs to another key than the one beside it"));
                }
                Ok(Some(ExistingKey { key, is_published: true }))
            }
            (None, Some(_)) => Err(broken(PRIVATE_KEY, "is missing")),
        }
    }

    fn publish(&self, key: &SigningKey) -> Result<(), Refusal> {
        create_file(&self.directory, PUBLIC_KEY, format!("{}\n", key.public()).as_bytes())?;
        Ok(())
    }

    fn read(&self, name: &str) -> Result<Option<Zeroizing<String>>, Refusal> {
        let unreadable = |error: io::Error| broken(name, &format!("cannot be read: {error}"));
        let mut file = match open_regular(&self.directory.join(name), Links::Refused) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error)),
        };
        // The permissions are checked on the opened file.
        let found = file.metadata().map_err(unreadable)?;
        if name == PRIVATE_KEY && found.mode() & 0o077 != 0 {
            let reason = "the key of the receipts, `config/receipt.key` of the home, can be read by others";
            return Err(Refusal::new(RefusalCode::StateUnusable, reason)
                .with_remedy("run `chmod 600` on it; if others may have read it, begin with a new one: move it and `receipt.pub` away"));
        }
        let mut text = Zeroizing::new(String::with_capacity(MAX_BYTES as usize));
        file.by_ref().take(MAX_BYTES).read_to_string(&mut text).map_err(unreadable)?;
        Ok(Some(text))
    }
}

fn private(text: &str) -> Result<SigningKey, Refusal> {
    SigningKey::from_text(text).map_err(|error| broken(PRIVATE_KEY, &format!("is broken: {error}")))
}

fn broken(name: &str, what: &str) -> Refusal {
    Refusal::new(RefusalCode::StateUnusable, format!("the key of the receipts, `config/{name}` of the home, {what}"))
        .with_remedy(
            "restore `receipt.key` from a backup, or move it and `receipt.pub` away to begin with a new one: receipts that \
             are there verify with the old `receipt.pub`",
        )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn the_key_is_made_once_and_for_its_owner() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("config");
        let keys = ReceiptKey::new(directory.clone());
        assert_eq!((keys.check().unwrap(), directory.exists()), (None, false), "nothing is made");
        let all: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| keys.open().unwrap().public())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(all.iter().all(|key| key == &all[0]));
        assert_eq!(ReceiptKey::new(directory.clone()).open().unwrap().public(), all[0]);
        assert_eq!(mode(&directory.join(PRIVATE_KEY)), 0o600);
        assert!(fs::read_to_string(directory.join(PRIVATE_KEY)).unwrap().starts_with("# Whoever has this key"));
        assert_eq!(fs::read_to_string(directory.join(PUBLIC_KEY)).unwrap(), format!("{}\n", all[0]));
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 2);
        // After a crash between the two, or after the owner removed it.
        fs::remove_file(directory.join(PUBLIC_KEY)).unwrap();
        assert_eq!((keys.check().unwrap(), directory.join(PUBLIC_KEY).exists()), (Some(all[0]), false));
        assert_eq!(keys.open().unwrap().public(), all[0]);
        assert!(directory.join(PUBLIC_KEY).exists());
    }

    #[test]
    fn a_key_that_cannot_be_used_is_never_replaced() {
        type Spoil<'a> = &'a dyn Fn(&Path);
        let other = SigningKey::generate().unwrap();
        let breaks: [(&str, Spoil<'_>, &str); 7] = [
            ("emptied", &|dir| fs::write(dir.join(PRIVATE_KEY), "").unwrap(), "is broken"),
            ("cut", &|dir| fs::write(dir.join(PRIVATE_KEY), "-----BEGIN PRIVATE KEY-----\nMC4C").unwrap(), "is broken"),
            ("removed", &|dir| fs::remove_file(dir.join(PRIVATE_KEY)).unwrap(), "is missing"),
            (
                "exchanged",
                &|dir| fs::write(dir.join(PRIVATE_KEY), &*other.to_text().unwrap()).unwrap(),
                "belongs to another",
            ),
            ("public", &|dir| fs::write(dir.join(PUBLIC_KEY), "ed25519:1").unwrap(), "is broken"),
            (
                "shared",
                &|dir| fs::set_permissions(dir.join(PRIVATE_KEY), fs::Permissions::from_mode(0o640)).unwrap(),
                "read by others",
            ),
            (
                "directory",
                &|dir| {
                    fs::remove_file(dir.join(PRIVATE_KEY)).unwrap();
                    fs::create_dir(dir.join(PRIVATE_KEY)).unwrap();
                },
                "is a directory",
            ),
        ];
        for (name, spoil, said) in breaks {
            let home = tempfile::tempdir().unwrap();
            let keys = ReceiptKey::new(home.path().to_owned());
            let (key, text) = (keys.open().unwrap().public(), fs::read(home.path().join(PRIVATE_KEY)).unwrap());
            spoil(home.path());
            let after = fs::read(home.path().join(PRIVATE_KEY)).ok();
            let refusal = keys.open().unwrap_err();
            assert_eq!(keys.check().unwrap_err(), refusal, "{name}");
            assert_eq!(refusal.code, RefusalCode::StateUnusable, "{name}");
            assert!(refusal.reason.contains(said) && refusal.remedy.is_some(), "{name}: {refusal:?}");
            assert_eq!(fs::read(home.path().join(PRIVATE_KEY)).ok(), after, "{name}");
            // Apply the remedies.
            fs::remove_dir(home.path().join(PRIVATE_KEY)).ok();
            fs::remove_file(home.path().join(PRIVATE_KEY)).ok();
            fs::remove_file(home.path().join(PUBLIC_KEY)).ok();
            assert_ne!(keys.open().unwrap().public(), key, "{name}");
            fs::write(home.path().join(PRIVATE_KEY), &text).unwrap();
            fs::remove_file(home.path().join(PUBLIC_KEY)).unwrap();
            assert_eq!(keys.open().unwrap().public(), key, "{name}");
        }
    }
}
