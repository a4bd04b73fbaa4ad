//! The order of signals: an id is given, the batch with the signal is committed, and only then comes the next id.
//!
//! Were two signals committed at a time, the later id could become readable first, and a consumer that had read it
//! would go on behind it and never see the other.

use std::sync::Arc;
use std::time::Duration;

use base::{AgentName, Clock};
use store::{Batch, Scan, Store, StoreError, Table};
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

use crate::Signal;
use crate::signal::{MotorResult, Priority, SOURCE};

/// Stores signals in order and wakes those who follow them. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SignalBus {
    store: Store,
    clock: Arc<dyn Clock>,
    /// The last id that was given out, whether or not its batch was committed: an id is never given twice, because the
    /// commit of a batch whose owner went away may still happen.
    last_id: Arc<Mutex<u64>>,
    newest: Arc<watch::Sender<u64>>,
}

impl SignalBus {
    /// Goes on behind the last stored signal.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn open(store: Store, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let newest = store.scan::<Signal>(Table::Signals, &Scan::all().newest_first().limit(1))?;
        let latest = newest.first().map_or(0, |(_, signal)| signal.id);
        Ok(Self { store, clock, last_id: Arc::new(Mutex::new(latest)), newest: Arc::new(watch::Sender::new(latest)) })
    }

    /// Puts a signal into `batch` that is worth acting upon for `ttl`. Commit the batch, then call [`StagedSignal::deliver`].
    ///
    /// Until it is delivered or dropped every other signal waits, so there is one signal to a batch: to stage a second
    /// into the same batch waits for ever.
    ///
    /// # Errors
    /// When the signal cannot be stored.
    pub async fn stage(
        &self,
        batch: &mut Batch,
        agent: &AgentName,
        body: MotorResult,
        ttl: Duration,
    ) -> Result<StagedSignal, StoreError> {
        let mut last_id = Arc::clone(&self.last_id).lock_owned().await;
        let id = last_id.saturating_add(1);
        let signal = Signal {
            id,
            agent: agent.clone(),
            created_at: self.clock.now(),
            ttl_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
            priority: Priority::High,
            source: SOURCE.to_owned(),
            body,
        };
        batch.put(Table::Signals, id.to_be_bytes(), &signal)?;
        *last_id = id;
        Ok(StagedSignal { signal, newest: Arc::clone(&self.newest), _order: last_id })
    }

    /// The signals behind the id `after`, oldest first, at most `limit`. With 0 it begins at the first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn since(&self, after: u64, limit: usize) -> Result<Vec<Signal>, StoreError> {
        let scan = Scan::all().after(after.to_be_bytes()).limit(limit);
        Ok(self.store.scan(Table::Signals, &scan)?.into_iter().map(|(_, signal)| signal).collect())
    }

    /// The signal with this id, if there is one. A caller that knows the signals of waiting runs finds them without
    /// reading the others.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn get(&self, id: u64) -> Result<Option<Signal>, StoreError> {
        self.store.get(Table::Signals, id.to_be_bytes())
    }

    /// Deletes signals that every consumer has passed. The newest stays: the next id is counted from it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn delete(&self, ids: &[u64]) -> Result<(), StoreError> {
        let mut batch = Batch::new();
        for id in ids.iter().filter(|id| **id < self.latest()) {
            batch.delete(Table::Signals, id.to_be_bytes());
        }
        self.store.commit(batch).await
    }

    /// The id of the newest delivered signal; 0 before the first.
    #[must_use]
    pub fn latest(&self) -> u64 {
        *self.newest.borrow()
    }

    /// Wakes at each delivery, with the newest id. Read [`SignalBus::since`] then: deliveries that come close together
    /// are one wake-up.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }
}

/// A signal in a batch that is not committed yet.
#[must_use = "commit the batch, then deliver the signal"]
#[derive(Debug)]
pub struct StagedSignal {
    signal: Signal,
    newest: Arc<watch::Sender<u64>>,
    _order: OwnedMutexGuard<u64>,
}

impl StagedSignal {
    /// The signal that was staged.
    #[must_use]
    pub fn signal(&self) -> &Signal {
        &self.signal
    }

    /// Wakes those who follow. Call it when the batch is durable; without it they see the signal with the next one.
    pub fn deliver(self) -> Signal {
        self.newest.send_replace(self.signal.id);
        self.signal
    }
}

#[cfg(test)]
mod tests {
    use base::{RunId, TestClock, Timestamp};

    use super::*;
    use crate::SignalStatus;
    use crate::TTL;

    fn body(run: u64) -> MotorResult {
        let run_id = RunId::parse(&format!("run_{run}")).unwrap();
        MotorResult::new(run_id, SignalStatus::AwaitingInput)
    }

    fn open(home: &tempfile::TempDir) -> (Store, SignalBus) {
        let store = Store::open(&home.path().join("state")).unwrap();
        let clock = Arc::new(TestClock::at(Timestamp::from_millis(5)));
        (store.clone(), SignalBus::open(store, clock).unwrap())
    }

    async fn send(store: &Store, bus: &SignalBus, run: u64) -> Signal {
        let mut batch = Batch::new();
        let staged = bus.stage(&mut batch, &AgentName::default(), body(run), TTL).await.unwrap();
        store.commit(batch).await.unwrap();
        staged.deliver()
    }

    fn ids(signals: &[Signal]) -> Vec<u64> {
        signals.iter().map(|signal| signal.id).collect()
    }

    #[tokio::test]
    async fn signals_are_stored_before_they_are_delivered_and_survive_a_restart() {
        let home = tempfile::tempdir().unwrap();
        let (store, bus) = open(&home);
        let follower = bus.subscribe();
        assert_eq!((bus.latest(), bus.since(0, 10).unwrap().len()), (0, 0));

        let mut batch = Batch::new();
        let staged = bus.stage(&mut batch, &AgentName::default(), body(1), TTL).await.unwrap();
        assert!(bus.since(0, 10).unwrap().is_empty());
        store.commit(batch).await.unwrap();
        assert!(!follower.has_changed().unwrap());
        let signal = staged.deliver();
        assert!(follower.has_changed().unwrap());
        assert_eq!((bus.latest(), signal.created_at), (1, Timestamp::from_millis(5)));
        assert_eq!(bus.since(0, 10).unwrap(), std::slice::from_ref(&signal));
        assert_eq!((bus.get(1).unwrap(), bus.get(0).unwrap(), bus.get(2).unwrap()), (Some(signal), None, None));

        send(&store, &bus, 2).await;
        send(&store, &bus, 3).await;
        // Dies between commit and delivery.
        let mut batch = Batch::new();
        let staged = bus.stage(&mut batch, &AgentName::default(), body(4), TTL).await.unwrap();
        store.commit(batch).await.unwrap();
        drop(staged);
        assert_eq!(bus.latest(), 3);
        drop((store, bus));

        let (store, bus) = open(&home);
        assert_eq!(bus.latest(), 4);
        assert_eq!(ids(&bus.since(0, 10).unwrap()), [1, 2, 3, 4]);
        assert_eq!(ids(&bus.since(1, 2).unwrap()), [2, 3]);
        assert!(bus.since(4, 10).unwrap().is_empty());
        assert!(bus.since(u64::MAX, 10).unwrap().is_empty());
        assert_eq!(send(&store, &bus, 5).await.id, 5);
    }

    #[tokio::test]
    async fn an_id_is_never_given_twice() {
        let home = tempfile::tempdir().unwrap();
        let (store, bus) = open(&home);
        let mut late = Batch::new();
        drop(bus.stage(&mut late, &AgentName::default(), body(1), TTL).await.unwrap());
        assert_eq!(send(&store, &bus, 2).await.id, 2);
        store.commit(late).await.unwrap();
        assert_eq!(ids(&bus.since(0, 10).unwrap()), [1, 2]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_follower_misses_nothing_and_sees_each_once_in_order() {
        const SENDERS: u64 = 8;
        const EACH: u64 = 40;
        let home = tempfile::tempdir().unwrap();
        let (store, bus) = open(&home);
        let following = bus.clone();
        let follower = tokio::spawn(async move {
            let mut wake = following.subscribe();
            let mut seen = Vec::new();
            while seen.len() < (SENDERS * EACH) as usize {
                seen.extend(ids(&following.since(seen.last().copied().unwrap_or(0), 3).unwrap()));
                if seen.last().copied().unwrap_or(0) >= *wake.borrow_and_update()
                    && seen.len() < (SENDERS * EACH) as usize
                {
                    wake.changed().await.unwrap();
                }
            }
            seen
        });
        let senders = (0..SENDERS).map(|sender| {
            let (store, bus) = (store.clone(), bus.clone());
            tokio::spawn(async move {
                for n in 0..EACH {
                    send(&store, &bus, sender * 1_000 + n).await;
                }
            })
        });
        for sender in senders.collect::<Vec<_>>() {
            sender.await.unwrap();
        }
        assert_eq!(follower.await.unwrap(), (1..=SENDERS * EACH).collect::<Vec<_>>());
        // In order for each run too: ids rise as they were sent.
        let all = bus.since(0, 1_000).unwrap();
        for sender in 0..SENDERS {
            let runs =
                all.iter().filter_map(|signal| signal.body.run_id.as_str().strip_prefix("run_")?.parse::<u64>().ok());
            let mine: Vec<u64> = runs.filter(|run| run / 1_000 == sender).collect();
            assert_eq!(mine, (0..EACH).map(|n| sender * 1_000 + n).collect::<Vec<_>>());
        }
    }
}
