//! The one thread that looks at the roots and publishes their entries: at the start, on changes and on request.
//!
//! It knows no trust and permits no use of a skill. It alone makes catalogues and writes the index. Robust against
//! roots that are missing, unreadable or replaced; floods of changes (they are looked at together, five times a second
//! at most); unavailable watches (it looks twice a second instead).

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::Clock;
use tokio::sync::watch;
use tokio::time::Instant;

use super::catalogue::{Catalogue, CatalogueEntry};
use super::discover::{self, DiscoveredRoot, Looking, SkillCandidate, candidate_at, candidates};
use super::inbox::Inbox;
use super::index;
use super::watch::{Heard, RootWatch};
use crate::place::{HOME, TOOLS};
use crate::{SkillBounds, SkillPlace, SkillsRoot};

/// Changes that follow each other within this are looked at together.
const QUIET: Duration = Duration::from_millis(50);
/// Continuous changes are looked at after this at the latest.
const MAX_QUIET: Duration = Duration::from_millis(200);
/// Poll interval of roots that are not watched.
const POLL: Duration = Duration::from_millis(500);
/// Maximum share of time for repeated looking: one part in this.
const POLL_SHARE: u32 = 10;
/// Delay of the second look at a fresh change: the time that a `Stamp` needs to settle, and some.
const SETTLE: Duration = Duration::from_millis(2_500);
/// Maximum delay of the index, so that a flood of changes does not write it each time.
const SAVE: Duration = Duration::from_secs(1);
/// Interval of looks at everything without events: some file systems do not report changes by others.
const SWEEP: Duration = Duration::from_secs(60);

pub(super) struct Keeper {
    pub(super) roots: Vec<SkillsRoot>,
    pub(super) bounds: SkillBounds,
    pub(super) index: PathBuf,
    /// Compared with the times of files.
    pub(super) clock: Arc<dyn Clock>,
    pub(super) most_watches: usize,
    pub(super) inbox: Arc<Inbox>,
    pub(super) published: watch::Sender<Option<Arc<Catalogue>>>,
    pub(super) changes: watch::Sender<u64>,
}

/// Tells all waiting callers, however the keeper ends.
impl Drop for Keeper {
    fn drop(&mut self) {
        self.inbox.end();
    }
}

impl Keeper {
    /// Runs until told to stop.
    pub(super) fn run(self, watched: bool) {
        let Some(catalogue) = self.first() else { return };
        let mut running = Running {
            catalogue,
            watch: None,
            polled: false,
            save_at: None,
            settle_at: Some(Instant::now() + SETTLE).filter(|_| watched),
            poll_at: None,
            sweep_at: None,
            keeper: self,
        };
        if watched {
            running.start_watching();
        }
        running.run();
    }

    /// The first look, for which callers wait.
    fn first(&self) -> Option<Arc<Catalogue>> {
        for root in self.roots.iter().filter(|root| [HOME, TOOLS].contains(&root.id.as_str())) {
            if let Err(error) = discover::make(&root.path) {
                tracing::warn!(%error, root = root.id, "a directory of the home cannot be made");
            }
        }
        let looked = self.look(&self.candidates(), || Arc::new(index::load(&self.index, &self.bounds)))?;
        let catalogue = Arc::new(Catalogue::new(looked.entries));
        self.published.send_replace(Some(catalogue.clone()));
        if !is_known(&catalogue, &looked.known) {
            self.save(&catalogue);
        }
        Some(catalogue)
    }

    fn candidates(&self) -> Vec<SkillCandidate> {
        let of = |root: &SkillsRoot| match candidates(root) {
            Ok(candidates) => candidates,
            Err(error) => {
                tracing::warn!(root = root.id, %error, "a directory of skills cannot be read");
                Vec::new()
            }
        };
        self.roots.iter().flat_map(of).collect()
    }

    /// `None` if the keeper was told to stop.
    fn look(&self, candidates: &[SkillCandidate], known: impl FnOnce() -> Arc<Catalogue>) -> Option<DiscoveredRoot> {
        let stop = self.inbox.stopped();
        let now = self.clock.now();
        let looked = Looking { roots: &self.roots, bounds: &self.bounds, now, stop }.look(candidates, known);
        (!self.stopped()).then_some(looked)
    }

    fn stopped(&self) -> bool {
        self.inbox.stopped().load(std::sync::atomic::Ordering::Relaxed)
    }

    fn save(&self, catalogue: &Catalogue) {
        if let Err(error) = index::save(&self.index, catalogue, &self.bounds) {
            tracing::warn!(%error, "the index of skills cannot be written");
        }
    }
}

struct Running {
    keeper: Keeper,
    catalogue: Arc<Catalogue>,
    /// `None` if watching is off or impossible.
    watch: Option<RootWatch>,
    /// Whether everything is polled instead.
    polled: bool,
    save_at: Option<Instant>,
    settle_at: Option<Instant>,
    poll_at: Option<Instant>,
    sweep_at: Option<Instant>,
}

impl Running {
    fn run(mut self) {
        while !self.keeper.stopped() {
            let deadlines = [self.save_at, self.settle_at, self.poll_at, self.sweep_at];
            let most = deadlines.into_iter().flatten().min().map(|at| at.saturating_duration_since(Instant::now()));
            if self.keeper.inbox.wait(self.watch.as_ref().map(AsFd::as_fd), most) {
                self.hear();
            }
            // After every wait: the bell may have rung during an event.
            let looks = self.keeper.inbox.take();
            if !looks.is_empty() {
                self.look_at_everything();
                for look in looks {
                    // A caller that no longer waits is ignored.
                    look.send(()).ok();
                }
            }
            self.meet_deadlines();
        }
        if self.save_at.is_some() {
            self.keeper.save(&self.catalogue);
        }
    }

    fn meet_deadlines(&mut self) {
        let now = Instant::now();
        let due = |at: &mut Option<Instant>| at.take_if(|at| *at <= now).is_some();
        if due(&mut self.save_at) {
            self.keeper.save(&self.catalogue);
        }
        if due(&mut self.settle_at) {
            self.look_at_fresh();
        }
        if due(&mut self.sweep_at) || due(&mut self.poll_at) {
            self.look_at_everything();
        }
    }

    /// Looks at everything once more after watching has begun: changes in between were not reported.
    fn start_watching(&mut self) {
        match RootWatch::new(self.keeper.bounds.entries, self.keeper.most_watches) {
            Ok(watch) => self.watch = Some(watch),
            Err(error) => self.stop_watching(&error),
        }
        self.look_at_everything();
    }

    fn stop_watching(&mut self, error: &std::io::Error) {
        tracing::warn!(%error, "the directories of skills cannot be watched and are looked at twice a second");
        self.watch = None;
        self.polled = true;
    }

    /// Takes in reported changes, and those that follow in quick succession.
    fn hear(&mut self) {
        let began = Instant::now();
        let mut heard = Heard::default();
        while let Some(watch) = &mut self.watch {
            watch.hear(&mut heard);
            if began.elapsed() >= MAX_QUIET || heard.touched.is_empty() && !heard.everything {
                break;
            }
            if !self.keeper.inbox.wait(Some(watch.as_fd()), Some(QUIET)) {
                break;
            }
        }
        if heard.everything {
            if let Some(watch) = &mut self.watch {
                watch.doubt();
            }
            self.look_at_everything();
        } else if !heard.touched.is_empty() {
            self.look_at(&heard.touched);
        }
    }

    fn look_at_everything(&mut self) {
        let began = Instant::now();
        let all_watched = self.watch_roots();
        let candidates = self.keeper.candidates();
        self.watch_entries(candidates.iter().map(|candidate| &candidate.place), RefreshRequest::No);
        if let Some(watch) = &mut self.watch {
            watch.forget_doubted();
        }
        let Some(looked) = self.keeper.look(&candidates, || self.catalogue.clone()) else { return };
        self.publish(Catalogue::new(looked.entries), looked.unsettled);
        let now = Instant::now();
        // Decided each time which of the two applies: roots come back.
        self.poll_at = (self.polled || !all_watched).then(|| now + POLL.max(began.elapsed() * POLL_SHARE));
        self.sweep_at = self.watch.is_some().then_some(now + SWEEP);
    }

    /// Whether each root is watched; `true` without a watch.
    fn watch_roots(&mut self) -> bool {
        let Some(watch) = &mut self.watch else { return true };
        let mut all = true;
        for root in &self.keeper.roots {
            match watch.root(root) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                    self.stop_watching(&error);
                    return true;
                }
                Err(_) => all = false,
            }
        }
        all
    }

    fn watch_entries<'p>(&mut self, places: impl Iterator<Item = &'p SkillPlace>, again: RefreshRequest) {
        let Some(watch) = &mut self.watch else { return };
        let mut failed = None;
        for place in places {
            let Some(root) = self.keeper.roots.iter().find(|root| root.id == place.root) else { continue };
            if again == RefreshRequest::No && watch.has_entry(place) {
                continue;
            }
            if let Err(error) = watch.entry(place, &root.path.join(&place.entry)) {
                failed = Some(error);
                break;
            }
        }
        if let Some(error) = failed {
            self.stop_watching(&error);
            self.poll_at = Some(Instant::now() + POLL);
        }
    }

    fn look_at_fresh(&mut self) {
        let fresh = self.catalogue.entries().iter().filter(|entry| entry.stamp.is_none());
        let fresh: BTreeSet<SkillPlace> = fresh.map(|entry| entry.place.clone()).collect();
        if !fresh.is_empty() {
            self.look_at(&fresh);
        }
    }

    fn look_at(&mut self, places: &BTreeSet<SkillPlace>) {
        self.watch_entries(places.iter(), RefreshRequest::Yes);
        let roots = &self.keeper.roots;
        let root_of = |place: &SkillPlace| roots.iter().find(|root| root.id == place.root);
        let candidate = |place: &SkillPlace| root_of(place).and_then(|root| candidate_at(root, &place.entry));
        let candidates: Vec<SkillCandidate> = places.iter().filter_map(candidate).collect();
        let Some(looked) = self.keeper.look(&candidates, || self.catalogue.clone()) else { return };
        let others = self.catalogue.entries().iter().filter(|entry| !places.contains(&entry.place));
        let entries: Vec<Arc<CatalogueEntry>> = others.cloned().chain(looked.entries).collect();
        self.publish(Catalogue::new(entries), looked.unsettled);
    }

    fn publish(&mut self, catalogue: Catalogue, unsettled: bool) {
        if unsettled {
            self.settle_at.get_or_insert_with(|| Instant::now() + SETTLE);
        }
        if !is_known(&catalogue, &self.catalogue) || !is_known(&self.catalogue, &catalogue) {
            self.save_at.get_or_insert_with(|| Instant::now() + SAVE);
        }
        let changed = !is_same(&catalogue, &self.catalogue);
        self.catalogue = Arc::new(catalogue);
        self.keeper.published.send_replace(Some(self.catalogue.clone()));
        if changed {
            self.keeper.changes.send_modify(|changes| *changes += 1);
        }
    }
}

/// Whether to watch an already watched entry again: it may have new directories.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RefreshRequest {
    Yes,
    No,
}

/// Whether the index of `known` equals that of `catalogue`: entries without a stamp are not in it.
fn is_known(catalogue: &Catalogue, known: &Catalogue) -> bool {
    let stamped = |catalogue: &Catalogue| catalogue.entries().iter().filter(|entry| entry.stamp.is_some()).count();
    let mut entries = catalogue.entries().iter().filter(|entry| entry.stamp.is_some());
    stamped(catalogue) == stamped(known) && entries.all(|entry| known.get(&entry.place) == Some(entry))
}

/// Whether lists of both look the same.
fn is_same(one: &Catalogue, other: &Catalogue) -> bool {
    let (one, other) = (one.entries(), other.entries());
    let same =
        |(a, b): (&Arc<CatalogueEntry>, &Arc<CatalogueEntry>)| Arc::ptr_eq(a, b) || (a.place == b.place && a.is_as(b));
    one.len() == other.len() && one.iter().zip(other).all(same)
}
