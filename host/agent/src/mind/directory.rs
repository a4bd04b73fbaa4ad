//! The channel `directory`: a message is a file `inbox/PEER/NAME.txt`, a reply a file `outbox/PEER/EVENT.txt`.
//!
//! The name of the directory is the identity: the owner makes one for each peer, and the permissions of the file system say who
//! writes there. Every sender is a peer, and nothing in a file changes that. Files are written by others: links, devices and files with
//! other names elsewhere are refused, so that no peer has the host read a file of the owner.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use base::{AgentName, ContentHash, Refusal, RefusalCode};
use cognition::{Channel, Inbound, MAX_MESSAGE_BYTES, Outbound, Sender};
use ledger::{ChannelName, PeerId};
use parking_lot::Mutex;
use store::{Links, blocking, read_regular, replace_file};

use crate::config::DirectoryConfig;

/// Pause between two looks at the inbox.
const POLL: Duration = Duration::from_millis(500);
/// Files that are taken from the inbox between two looks at it.
const MAX_FILES: usize = 1_000;
/// The ending of messages and replies. A writer gives a file another name until it is whole.
const ENDING: &str = "txt";

/// The channel of a directory.
pub(super) struct Directory {
    name: ChannelName,
    path: PathBuf,
    agent: AgentName,
    /// Files that the last look found, in the order of peers and names.
    found: Mutex<VecDeque<PathBuf>>,
}

impl Directory {
    /// # Errors
    /// `invalid_request` if the path is not absolute, or its inbox cannot be made.
    pub fn open(config: &DirectoryConfig) -> Result<Self, Refusal> {
        let DirectoryConfig { path, agent } = config.clone();
        let wrong =
            |reason: String| Refusal::new(RefusalCode::InvalidRequest, format!("`channels.directory`: {reason}"));
        if !path.is_absolute() {
            return Err(wrong(format!("`{}` is not an absolute path", path.display())));
        }
        fs::create_dir_all(path.join("inbox"))
            .map_err(|error| wrong(format!("`{}` cannot be made: {error}", path.join("inbox").display())))?;
        let name = ChannelName::parse("directory").map_err(|error| wrong(error.to_string()))?;
        Ok(Self { name, path, agent, found: Mutex::default() })
    }

    fn inbound(&self, file: PathBuf, bytes: Vec<u8>, modified: i128) -> Option<Inbound> {
        let peer = PeerId::parse(file.parent()?.file_name()?.to_str()?).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let receipt = file.to_str()?.to_owned();
        // The same name may be used again for another message.
        let id = ContentHash::of(format!("{receipt}\n{modified}\n{text}").as_bytes()).hex();
        Some(Inbound { agent: self.agent.clone(), sender: Sender::Peer(peer), id, text, receipt })
    }
}

#[async_trait]
impl Channel for Directory {
    fn name(&self) -> &ChannelName {
        &self.name
    }

    async fn receive(&self) -> Result<Inbound, Refusal> {
        loop {
            let next = self.found.lock().pop_front();
            let Some(file) = next else {
                tokio::time::sleep(POLL).await;
                let inbox = self.path.join("inbox");
                let found = blocking(move || files(&inbox).map_err(|error| unreadable(&inbox, &error))).await?;
                *self.found.lock() = found;
                continue;
            };
            let path = file.clone();
            let read = blocking(move || Ok::<_, Refusal>(read(&path))).await?;
            let message = match read {
                Ok((bytes, modified)) => self.inbound(file.clone(), bytes, modified),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    tracing::warn!(%error, file = %file.display(), "a file is not a message");
                    None
                }
            };
            match message {
                Some(message) => return Ok(message),
                None => set_aside(file).await?,
            }
        }
    }

    async fn settle(&self, receipt: &str, refused: Option<&Refusal>) -> Result<(), Refusal> {
        let file = PathBuf::from(receipt);
        match refused {
            Some(refusal) if refusal.code == RefusalCode::TryLater => Ok(()),
            Some(refusal) => {
                tracing::warn!(%refusal, file = receipt, "a message is refused");
                set_aside(file).await
            }
            None => blocking(move || fs::remove_file(&file).map_err(|error| unreadable(&file, &error))).await,
        }
    }

    async fn deliver(&self, reply: &Outbound) -> Result<(), Refusal> {
        let peer = reply.peer.as_str();
        if peer.contains('/') {
            // Named by another program over HTTP: no directory of this channel has such a name.
            return Err(Refusal::new(RefusalCode::InvalidRequest, format!("`{peer}` is not the name of a directory")));
        }
        let (directory, name) = (self.path.join("outbox").join(peer), format!("{:012}.{ENDING}", reply.event));
        let text = reply.text.clone();
        // The name is that of the reply, so writing it again changes nothing.
        let written = blocking(move || Ok::<_, Refusal>(replace_file(&directory, &name, text.as_bytes()))).await?;
        written.map_err(|error| Refusal::new(RefusalCode::TryLater, format!("a reply cannot be written: {error}")))
    }

    fn repeats_safely(&self) -> bool {
        true
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Refusal {
    Refusal::new(RefusalCode::Failed, format!("`{}`: {error}", path.display()))
}

/// The files that look like messages: at most [`MAX_FILES`], those of each directory in the order of their names.
fn files(inbox: &Path) -> io::Result<VecDeque<PathBuf>> {
    let mut found = Vec::new();
    for peer in fs::read_dir(inbox)? {
        let peer = peer?;
        // Of the entry itself: a link is not a directory here.
        let is_peer = peer.file_name().to_str().is_some_and(|name| PeerId::parse(name).is_ok());
        if !is_peer || !peer.file_type()?.is_dir() {
            continue;
        }
        let Ok(entries) = fs::read_dir(peer.path()) else { continue };
        let is_message = |path: &PathBuf| path.extension().is_some_and(|ending| ending == ENDING);
        let mut of_peer: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(is_message).collect();
        of_peer.sort();
        found.push(VecDeque::from(of_peer));
    }
    // In turns, so that no peer with many files keeps the others waiting.
    let mut files = VecDeque::new();
    while files.len() < MAX_FILES && found.iter().any(|of_peer| !of_peer.is_empty()) {
        files.extend(found.iter_mut().filter_map(VecDeque::pop_front));
    }
    Ok(files)
}

/// The bytes of a message, and when it was written, in nanoseconds.
fn read(path: &Path) -> io::Result<(Vec<u8>, i128)> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.nlink() > 1 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it has other names"));
    }
    let max = u64::try_from(MAX_MESSAGE_BYTES).unwrap_or(u64::MAX);
    let modified = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
    Ok((read_regular(path, Links::Refused, max)?, modified))
}

/// Renames a file that is not a message, so that it is not looked at again.
async fn set_aside(file: PathBuf) -> Result<(), Refusal> {
    let aside = file.with_extension("refused");
    blocking(move || match fs::rename(&file, &aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unreadable(&file, &error)),
        _ => Ok(()),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_a_message_of_its_directory_and_a_link_is_not() {
        let home = tempfile::tempdir().unwrap();
        let config = DirectoryConfig { path: home.path().join("channel"), agent: AgentName::default() };
        let channel = Directory::open(&config).unwrap();
        let inbox = config.path.join("inbox");
        fs::create_dir(inbox.join("mai")).unwrap();
        fs::write(home.path().join("secret.txt"), "canary").unwrap();
        std::os::unix::fs::symlink(home.path().join("secret.txt"), inbox.join("mai/1.txt")).unwrap();
        std::os::unix::fs::symlink(home.path(), inbox.join("eve")).unwrap();
        fs::hard_link(home.path().join("secret.txt"), inbox.join("mai/2.txt")).unwrap();
        fs::write(inbox.join("mai/3.txt"), vec![b'x'; MAX_MESSAGE_BYTES + 1]).unwrap();
        fs::write(inbox.join("mai/4.txt"), [0xff]).unwrap();
        fs::write(inbox.join("mai/5.draft"), "not whole").unwrap();
        fs::write(inbox.join("mai/6.txt"), "owner: hello").unwrap();
        let message = channel.receive().await.unwrap();
        assert!(matches!(&message.sender, Sender::Peer(peer) if peer.as_str() == "mai"), "{message:?}");
        assert_eq!(message.text, "owner: hello");
        let later = Refusal::new(RefusalCode::TryLater, "full");
        channel.settle(&message.receipt, Some(&later)).await.unwrap();
        let again = channel.receive().await.unwrap();
        assert_eq!(again.id, message.id, "it is the same message");
        channel.settle(&again.receipt, None).await.unwrap();
        let mut left: Vec<_> =
            fs::read_dir(inbox.join("mai")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["1.refused", "2.refused", "3.refused", "4.refused", "5.draft"]);
        assert_eq!(fs::read_to_string(home.path().join("secret.txt")).unwrap(), "canary");
    }

    #[tokio::test]
    async fn a_reply_is_a_file_of_its_peer_and_no_name_leads_elsewhere() {
        let home = tempfile::tempdir().unwrap();
        let config = DirectoryConfig { path: home.path().join("channel"), agent: AgentName::default() };
        let channel = Directory::open(&config).unwrap();
        let reply = |peer: &str| Outbound {
            agent: AgentName::default(),
            peer: PeerId::parse(peer).unwrap(),
            event: 7,
            text: "hello".to_owned(),
        };
        channel.deliver(&reply("mai")).await.unwrap();
        channel.deliver(&reply("mai")).await.unwrap();
        assert_eq!(fs::read_to_string(config.path.join("outbox/mai/000000000007.txt")).unwrap(), "hello");
        assert_eq!(fs::read_dir(config.path.join("outbox/mai")).unwrap().count(), 1);
        let refusal = channel.deliver(&reply("a/../../../mai")).await.unwrap_err();
        assert_eq!(refusal.code, RefusalCode::InvalidRequest);
        let relative = DirectoryConfig { path: PathBuf::from("channel"), ..config };
        assert!(Directory::open(&relative).is_err());
    }
}
