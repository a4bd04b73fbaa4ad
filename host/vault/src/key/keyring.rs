//! The key in the system's keyring, over the Secret Service of the session bus.
//!
//! It costs nothing without a session bus. It never prompts to unlock anything: a host may have no screen. A bus or
//! keyring that hangs is abandoned after a timeout.

use std::collections::HashMap;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use seal::{Key, fill};
use secret_service::{Collection, EncryptionType, Error, SecretService};
use zeroize::Zeroizing;

use super::KeyringFault;

/// Timeout of all keyring operations together; a keyring answers in a few milliseconds.
const PATIENCE: Duration = Duration::from_secs(3);
const LABEL: &str = "Motor Cortex: key of the credentials of a home";
const APPLICATION: &str = "motor-cortex";

/// Stores a key, and returns the id under which it is found.
pub(super) fn put(key: &Key) -> Result<String, KeyringFault> {
    let mut id = [0; 16];
    fill(&mut id).map_err(|_| KeyringFault::Failed)?;
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (bytes, name) = (Zeroizing::new(key.bytes().to_vec()), id.clone());
    patiently(async move |service| {
        let collection = unlocked(&service).await?;
        let item = collection.create_item(LABEL, attributes(&name), &bytes, false, "application/octet-stream");
        item.await.map_err(fault)?;
        Ok(())
    })?;
    // Detects a keyring that loses keys before anything depends on it.
    match get(&id) {
        Ok(kept) if kept.bytes() == key.bytes() => Ok(id),
        _ => Err(KeyringFault::Failed),
    }
}

/// The key stored under that id.
pub(super) fn get(id: &str) -> Result<Key, KeyringFault> {
    let id = id.to_owned();
    patiently(async move |service| {
        let collection = unlocked(&service).await?;
        let found = collection.search_items(attributes(&id)).await.map_err(fault)?;
        let item = found.first().ok_or(KeyringFault::NoKey)?;
        let bytes = Zeroizing::new(item.get_secret().await.map_err(fault)?);
        Key::of(&bytes).ok_or(KeyringFault::NoKey)
    })
}

fn attributes(id: &str) -> HashMap<&str, &str> {
    HashMap::from([("application", APPLICATION), ("key", id)])
}

/// The unlocked default collection, which outlives the session.
async fn unlocked<'a>(service: &'a SecretService<'a>) -> Result<Collection<'a>, KeyringFault> {
    let collection = service.get_default_collection().await.map_err(fault)?;
    if collection.is_locked().await.map_err(fault)? { Err(KeyringFault::Locked) } else { Ok(collection) }
}

fn fault(error: Error) -> KeyringFault {
    match error {
        Error::Locked | Error::Prompt => KeyringFault::Locked,
        Error::NoResult | Error::Unavailable => KeyringFault::Absent,
        _ => KeyringFault::Failed,
    }
}

/// Runs on its own thread: the caller's thread may belong to a runtime, which another runtime must not block.
fn patiently<T: Send + 'static>(
    work: impl AsyncFnOnce(SecretService<'static>) -> Result<T, KeyringFault> + Send + 'static,
) -> Result<T, KeyringFault> {
    if !has_session_bus() {
        return Err(KeyringFault::Absent);
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let done = runtime.map_err(|_| KeyringFault::Failed).and_then(|runtime| {
            runtime.block_on(async {
                let work = async {
                    let service = SecretService::connect(EncryptionType::Dh).await;
                    work(service.map_err(|_| KeyringFault::Absent)?).await
                };
                tokio::time::timeout(PATIENCE, work).await.unwrap_or(Err(KeyringFault::Failed))
            })
        });
        // After the timeout the receiver is gone.
        sender.send(done).ok();
    };
    let thread = std::thread::Builder::new().name("keyring".to_owned()).spawn(run);
    thread.map_err(|_| KeyringFault::Failed)?;
    receiver.recv_timeout(PATIENCE * 2).unwrap_or(Err(KeyringFault::Failed))
}

/// The library finds the bus by the same two variables; this only checks that there is one.
#[expect(clippy::disallowed_methods, reason = "the library reads the same two")]
fn has_session_bus() -> bool {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    set("DBUS_SESSION_BUS_ADDRESS").is_some()
        || set("XDG_RUNTIME_DIR").is_some_and(|directory| Path::new(&directory).join("bus").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a separate keyring:
    /// `dbus-run-session -- sh -c 'echo -n pw | gnome-keyring-daemon --unlock --components=secrets; cargo test -p vault
    /// --features keyring -- --ignored keyring'`
    #[test]
    #[ignore = "needs a session with a keyring"]
    fn a_keyring_keeps_a_key() {
        let key = Key::random().unwrap();
        let id = put(&key).unwrap();
        assert_eq!(get(&id).unwrap().bytes(), key.bytes());
        assert_eq!(get("another").unwrap_err(), KeyringFault::NoKey);
    }
}
