//! Watches for changes: inotify on each root and on every directory of its entries (SPEC HOST-10).
//!
//! Uses the system's interface directly: a general watcher also subscribes to opens, so that looking at ten thousand
//! skills would overflow its queue and cause another look; it follows links that watched directories contain, and hides
//! its failures to watch a directory. This module reports only where something happened; looking finds the change.
//! Robust against queue overflows, limits on watches, roots that go and come, and endless directories.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::snapshot::HISTORY;
use crate::{SkillPlace, SkillsRoot};

/// Changes of content, names and permissions, but not reads.
const CHANGES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::EXCL_UNLINK);
/// A root may be named by a link, directories below it may not.
const CHANGES_BELOW: WatchFlags = CHANGES.union(WatchFlags::DONT_FOLLOW);

/// Changes reported by inotify.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Entries in which something happened.
    pub(super) touched: BTreeSet<SkillPlace>,
    /// Something happened in an unknown place: everything has to be looked at.
    pub(super) everything: bool,
}

/// The watches of a library.
#[derive(Debug)]
pub(super) struct RootWatch {
    inotify: OwnedFd,
    spots: HashMap<i32, Spot>,
    roots: HashMap<String, i32>,
    entries: HashMap<SkillPlace, WatchedDirectory>,
    /// Maximum watched directories of one entry. An entry with more cannot be read.
    most_directories: u64,
    /// Maximum watches altogether. They are counted per user, and other programs need some too.
    most_watches: usize,
}

/// The watched directories of an entry.
#[derive(Debug, Default)]
struct WatchedDirectory {
    watches: Vec<i32>,
    /// There may be new directories, or others in their place.
    doubted: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Spot {
    Root(String),
    Entry(SkillPlace),
}

impl RootWatch {
    /// Starts without any watches.
    ///
    /// # Errors
    /// If the system has no inotify instance left.
    pub(super) fn new(most_directories: u64, most_watches: usize) -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let (spots, roots, entries) = (HashMap::new(), HashMap::new(), HashMap::new());
        Ok(Self { inotify, spots, roots, entries, most_directories, most_watches })
    }

    /// Whether all directories of an entry are watched, as far as known; `false` for a file.
    pub(super) fn has_entry(&self, place: &SkillPlace) -> bool {
        self.entries.get(place).is_some_and(|watched| !watched.doubted)
    }

    /// Marks every entry to be gone through again.
    pub(super) fn doubt(&mut self) {
        self.entries.values_mut().for_each(|watched| watched.doubted = true);
    }

    /// Ends the watches of doubted entries that were not gone through again: they no longer exist.
    pub(super) fn forget_doubted(&mut self) {
        let gone: Vec<SkillPlace> =
            self.entries.iter().filter(|(_, of)| of.doubted).map(|(place, _)| place.clone()).collect();
        for place in gone {
            let watched = self.entries.remove(&place).unwrap_or_default();
            self.drop_of(&place, watched.watches);
        }
    }

    /// Watches which entries of a root come and go. The root may have been silently replaced by renaming its parent, so
    /// this is called repeatedly; all entries of a new root are gone through again.
    ///
    /// # Errors
    /// If it cannot be watched; it may be missing.
    pub(super) fn root(&mut self, root: &SkillsRoot) -> io::Result<()> {
        let watch = inotify::add_watch(&self.inotify, &root.path, CHANGES)?;
        let old = self.roots.insert(root.id.clone(), watch);
        if old == Some(watch) {
            return Ok(());
        }
        self.spots.insert(watch, Spot::Root(root.id.clone()));
        if let Some(old) = old {
            self.drop(old);
        }
        self.doubt();
        Ok(())
    }

    /// Watches all directories of an entry; a missing entry or a file has none. A directory is watched before its list
    /// is read, so that nothing is missed in between.
    ///
    /// # Errors
    /// If there are no watches left. Other failures are found by looking.
    pub(super) fn entry(&mut self, place: &SkillPlace, path: &Path) -> io::Result<()> {
        let mut watches = Vec::new();
        let mut waiting = vec![path.to_owned()];
        let mut left = self.most_directories;
        while let Some(directory) = waiting.pop() {
            if self.spots.len() >= self.most_watches {
                return Err(io::Error::new(io::ErrorKind::StorageFull, "there are too many directories to watch"));
            }
            match inotify::add_watch(&self.inotify, &directory, CHANGES_BELOW) {
                Ok(watch) => {
                    self.spots.insert(watch, Spot::Entry(place.clone()));
                    watches.push(watch);
                }
                Err(error @ (Errno::NOSPC | Errno::NOMEM)) => return Err(error.into()),
                Err(_) => continue,
            }
            let Ok(below) = fs::read_dir(&directory) else { continue };
            // The history of a repository changes often, and is no part of the skill.
            let is_history = |name: &OsStr| directory == path && name == HISTORY;
            for entry in below.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
                if is_history(&entry.file_name()) {
                    continue;
                }
                let Some(less) = left.checked_sub(1) else { break };
                left = less;
                waiting.push(entry.path());
            }
        }
        let old = self.entries.remove(place).unwrap_or_default().watches;
        self.drop_of(place, old.into_iter().filter(|watch| !watches.contains(watch)).collect());
        if !watches.is_empty() {
            self.entries.insert(place.clone(), WatchedDirectory { watches, doubted: false });
        }
        Ok(())
    }

    /// Ends the watches that still belong to this place: a renamed directory is watched under its new name.
    fn drop_of(&mut self, place: &SkillPlace, watches: Vec<i32>) {
        for watch in watches {
            if self.spots.get(&watch).is_some_and(|spot| matches!(spot, Spot::Entry(of) if of == place)) {
                self.drop(watch);
            }
        }
    }

    fn drop(&mut self, watch: i32) {
        self.spots.remove(&watch);
        // This fails if the watch ended with its directory.
        inotify::remove_watch(&self.inotify, watch).ok();
    }

    /// Collects all events up to now.
    pub(super) fn hear(&mut self, heard: &mut Heard) {
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return,
                Err(error) => {
                    tracing::warn!(%error, "changes of skills cannot be heard, everything is looked at");
                    heard.everything = true;
                    return;
                }
            };
            let what = event.events();
            if what.contains(ReadFlags::QUEUE_OVERFLOW) {
                heard.everything = true;
                continue;
            }
            let gone = what.intersects(ReadFlags::IGNORED);
            match self.spots.get(&event.wd()) {
                None => {}
                Some(Spot::Entry(place)) => {
                    heard.touched.insert(place.clone());
                }
                Some(Spot::Root(root)) => {
                    let moved = what.intersects(ReadFlags::MOVE_SELF | ReadFlags::DELETE_SELF | ReadFlags::UNMOUNT);
                    if gone || moved {
                        // There may be another one in its place by now.
                        self.roots.remove(root);
                        heard.everything = true;
                    }
                    // A name that is not text is found by looking at everything: it is rare.
                    match event.file_name().map(|name| name.to_str()) {
                        Some(Ok(entry)) => {
                            let place = SkillPlace::new(root, entry);
                            if place.is_plain() {
                                heard.touched.insert(place);
                            }
                        }
                        Some(Err(_)) => heard.everything = true,
                        None => {}
                    }
                }
            }
            if gone {
                self.spots.remove(&event.wd());
            }
        }
    }
}

impl AsFd for RootWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::place::HOME;

    fn watched(skills: &Path) -> RootWatch {
        let mut watch = RootWatch::new(10, 100).unwrap();
        watch.root(&SkillsRoot::home(skills.to_owned())).unwrap();
        watch
    }

    fn heard(watch: &mut RootWatch) -> (Vec<String>, bool) {
        let mut heard = Heard::default();
        watch.hear(&mut heard);
        (heard.touched.into_iter().map(|place| place.entry).collect(), heard.everything)
    }

    #[test]
    fn what_happens_is_heard_of_its_entry_and_reading_makes_no_sound() {
        let home = tempfile::tempdir().unwrap();
        let skills = home.path();
        fs::create_dir_all(skills.join("mail/scripts")).unwrap();
        fs::create_dir(skills.join("outside")).unwrap();
        symlink(skills.join("outside"), skills.join("mail/link")).unwrap();
        let mut watch = watched(skills);
        let mail = SkillPlace::new(HOME, "mail");
        watch.entry(&mail, &skills.join("mail")).unwrap();
        assert!(watch.has_entry(&mail));
        assert_eq!(heard(&mut watch), (vec![], false));
        fs::write(skills.join("mail/scripts/run.py"), "one").unwrap();
        assert_eq!(heard(&mut watch), (vec!["mail".to_owned()], false));
        fs::read(skills.join("mail/scripts/run.py")).unwrap();
        assert_eq!(fs::read_dir(skills.join("mail")).unwrap().count(), 2);
        // Behind a link, or hidden.
        fs::write(skills.join("outside/a"), "").unwrap();
        fs::write(skills.join(".staged"), "").unwrap();
        assert_eq!(heard(&mut watch), (vec![], false));
        fs::write(skills.join("web.zip"), "").unwrap();
        fs::rename(skills.join("mail"), skills.join("post")).unwrap();
        assert_eq!(heard(&mut watch), (["mail", "post", "web.zip"].map(str::to_owned).to_vec(), false));
        // A renamed entry is watched under its new name.
        let post = SkillPlace::new(HOME, "post");
        watch.entry(&post, &skills.join("post")).unwrap();
        watch.entry(&mail, &skills.join("mail")).unwrap();
        fs::write(skills.join("post/scripts/run.py"), "two").unwrap();
        assert_eq!(heard(&mut watch), (vec!["post".to_owned()], false));
        fs::remove_dir_all(skills).unwrap();
        assert!(heard(&mut watch).1);
        assert!(watch.root(&SkillsRoot::home(skills.to_owned())).is_err());
        fs::create_dir(skills).unwrap();
        watch.root(&SkillsRoot::home(skills.to_owned())).unwrap();
        assert!(!watch.has_entry(&post));
        fs::write(skills.join("web.zip"), "").unwrap();
        assert_eq!(heard(&mut watch), (vec!["web.zip".to_owned()], false));
    }

    #[test]
    fn a_queue_that_overflows_is_heard() {
        let home = tempfile::tempdir().unwrap();
        let (one, other) = (home.path().join("a.zip"), home.path().join("b.zip"));
        fs::write(&one, "").unwrap();
        fs::write(&other, "").unwrap();
        let mut watch = watched(home.path());
        let most = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let most: u32 = most.trim().parse().unwrap();
        for round in 0..=most {
            fs::set_permissions(if round % 2 == 0 { &one } else { &other }, Permissions::from_mode(0o600)).unwrap();
        }
        assert!(heard(&mut watch).1);
        assert_eq!(heard(&mut watch), (vec![], false));
    }

    #[test]
    fn watches_are_limited_and_those_of_one_entry_too() {
        let home = tempfile::tempdir().unwrap();
        for at in 0..200 {
            fs::create_dir_all(home.path().join(format!("many/{at}"))).unwrap();
            fs::create_dir_all(home.path().join(format!("entry-{at}"))).unwrap();
        }
        let mut watch = watched(home.path());
        watch.entry(&SkillPlace::new(HOME, "many"), &home.path().join("many")).unwrap();
        assert!(watch.spots.len() <= 12, "{}", watch.spots.len());
        let entries = (0..200).map(|at| format!("entry-{at}"));
        let failed = entries.map(|entry| watch.entry(&SkillPlace::new(HOME, &entry), &home.path().join(&entry)));
        let failed = failed.filter_map(Result::err).next().unwrap();
        assert_eq!(failed.kind(), io::ErrorKind::StorageFull);
        assert!(watch.spots.len() <= 100);
        // A doubted entry that is not gone through again returns its watches.
        watch.doubt();
        watch.forget_doubted();
        assert_eq!(watch.spots.len(), 1);
        watch.entry(&SkillPlace::new(HOME, "entry-0"), &home.path().join("entry-0")).unwrap();
    }
}
