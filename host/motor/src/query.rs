//! Reading runs: lists, status, log, and waiting for events.
//!
//! Nothing here changes a run, and all of it reads only durable state; live hints are marked as such.

use std::collections::{BTreeMap, BTreeSet};

use base::{AgentName, Refusal, RefusalCode, RunId};
use store::{Scan, Table};

use crate::counters::RunTotals;
use crate::event::{RunEvent, StoredEvent, event_key, event_prefix};
use crate::live::history;
use crate::log;
use crate::motor::Motor;
use crate::phase::DriverOutcome;
use crate::record::RunRecord;
use crate::relay::Relay;
use crate::state::RunState;
use crate::status::RunStatus;
use crate::trace::RunTrace;
use crate::watch::Watch;

/// Records read at a time where a filter skips some.
const LIST_PAGE: usize = 64;

/// Which runs to list.
#[derive(Debug, Clone, Default)]
pub struct ListFilter {
    /// Only those with this status.
    pub status: Option<RunStatus>,
    /// Only this agent's.
    pub agent: Option<AgentName>,
    /// Only those before this one in time, which need not exist.
    pub before: Option<RunId>,
    /// At most this many.
    pub limit: usize,
}

impl Motor {
    /// Runs, newest first. Reads no more than it has to look at.
    ///
    /// # Errors
    /// If the store fails.
    pub fn list(&self, filter: ListFilter) -> Result<Vec<RunRecord>, Refusal> {
        let fits = |record: &RunRecord| {
            filter.status.is_none_or(|status| record.status == status)
                && filter.agent.as_ref().is_none_or(|agent| record.agent == *agent)
        };
        let store = &self.inner.books.store;
        let mut found = Vec::new();
        let mut last: Option<Vec<u8>> = filter.before.as_ref().map(|run| run.as_str().into());
        if filter.status.is_some_and(|status| !status.is_terminal()) {
            // Live runs are few and in a table of their own.
            let scan = Scan::all().newest_first();
            let scan = match last.take() {
                Some(key) => scan.after(key),
                None => scan,
            };
            for (key, _) in store.scan::<RunId>(Table::Live, &scan)? {
                found.extend(store.get::<RunRecord>(Table::Runs, key)?.filter(fits));
            }
            found.truncate(filter.limit);
            return Ok(found);
        }
        let picky = filter.status.is_some() || filter.agent.is_some();
        while found.len() < filter.limit {
            // A filter may skip most records: small pages would mean many reads.
            let page = if picky { LIST_PAGE } else { filter.limit - found.len() };
            let scan = Scan::all().newest_first().limit(page);
            let scan = match last.take() {
                Some(key) => scan.after(key),
                None => scan,
            };
            let records = store.scan::<RunRecord>(Table::Runs, &scan)?;
            let is_last = records.len() < page;
            for (key, record) in records {
                found.extend(Some(record).filter(fits));
                last = Some(key);
            }
            if is_last {
                break;
            }
        }
        found.truncate(filter.limit);
        Ok(found)
    }

    /// The work of all runs since this host started.
    #[must_use]
    pub fn totals(&self) -> RunTotals {
        self.inner.books.counters.totals()
    }

    /// The number of runs that are not over, by status, and their agents. Reads the head of each of them.
    ///
    /// # Errors
    /// If the store fails.
    pub fn live(&self) -> Result<(BTreeMap<&'static str, u64>, BTreeSet<AgentName>), Refusal> {
        let store = &self.inner.books.store;
        let (mut counts, mut agents) = (BTreeMap::new(), BTreeSet::new());
        for (key, _) in store.scan::<RunId>(Table::Live, &Scan::all())? {
            // A run may end between the two reads.
            let record = store.get::<RunRecord>(Table::Runs, key)?.filter(|record| !record.status.is_terminal());
            if let Some(record) = record {
                *counts.entry(record.status.as_str()).or_default() += 1;
                agents.insert(record.agent);
            }
        }
        Ok((counts, agents))
    }

    /// Everything about a run, as it is durable.
    ///
    /// # Errors
    /// `NotFound`, or an error of the store.
    pub fn status(&self, id: &RunId) -> Result<RunTrace, Refusal> {
        let (RunState { trace, .. }, _) = self.inner.books.load(id)?;
        Ok(trace)
    }

    /// The idempotency key that a run was started with, if it has one.
    ///
    /// # Errors
    /// An error of the store.
    pub fn key_of(&self, id: &RunId) -> Result<Option<String>, Refusal> {
        let first: Option<StoredEvent> = self.inner.books.store.get(Table::Events, event_key(id, 0))?;
        Ok(first.and_then(|first| match first.event {
            RunEvent::Created { key, .. } => key,
            _ => None,
        }))
    }

    /// The head of a run, as it is durable.
    ///
    /// # Errors
    /// `NotFound`, or an error of the store.
    pub fn record(&self, id: &RunId) -> Result<RunRecord, Refusal> {
        Ok(self.inner.books.record(id)?)
    }

    /// The end of the run's log, a line for each event: as many bytes as its rules say, by default 16 KiB.
    ///
    /// # Errors
    /// `NotFound`, or an error of the store.
    pub fn log(&self, id: &RunId) -> Result<String, Refusal> {
        let most = self.inner.books.record(id)?.rules.log_bytes as usize;
        let scan = Scan::prefix(event_prefix(id)).newest_first().limit(most / log::MIN_LINE);
        let events = self.inner.books.store.scan::<StoredEvent>(Table::Events, &scan)?;
        Ok(log::tail(events.iter().map(|(_, stored)| stored), most))
    }

    /// The run's events so far and then its later ones, until it is over.
    ///
    /// # Errors
    /// `NotFound`, or an error of the store.
    pub fn watch(&self, id: &RunId) -> Result<Watch, Refusal> {
        let (drivers, books) = (&self.inner.drivers, &self.inner.books);
        let relay = Relay::new(drivers.active().clone(), books.clone(), id.clone());
        if let Some(live) = drivers.active().live(id) {
            return Ok(Watch::of(&live).relayed(relay));
        }
        // Without a driver nothing can happen between this read and the watcher's, unless a driver starts: the relay finds
        // it and the events it wrote.
        let (state, events) = books.load(id)?;
        let watch = Watch::of_history(history(id, &events));
        Ok(if state.record.status.is_terminal() { watch } else { watch.relayed(relay) })
    }

    /// Waits until the run is over, also while it waits for people.
    ///
    /// # Errors
    /// `NotFound`; the error that stopped the driver, if the run is left for a later host; or an error of the store.
    pub async fn wait(&self, id: &RunId) -> Result<RunRecord, Refusal> {
        self.wait_until(id, RunStatus::is_terminal).await
    }

    /// Waits until the run is over or waits for a person.
    ///
    /// # Errors
    /// As for [`Motor::wait`].
    pub async fn wait_for_people(&self, id: &RunId) -> Result<RunRecord, Refusal> {
        self.wait_until(id, |status| status.is_terminal() || status.is_waiting()).await
    }

    async fn wait_until(&self, id: &RunId, is_reached: fn(RunStatus) -> bool) -> Result<RunRecord, Refusal> {
        let active = self.inner.drivers.active();
        loop {
            let mut launches = active.launches();
            if let Some(progress) = self.inner.drivers.progress(id) {
                if let DriverOutcome::Suspended { refusal, again: false } = progress.gone().await {
                    return Err(refusal);
                }
                continue;
            }
            let record = self.inner.books.record(id)?;
            if is_reached(record.status) {
                return Ok(record);
            }
            let unattended = !launches.has_changed().unwrap_or_default()
                && !record.status.is_waiting()
                && !self.inner.drivers.will_take_up(id);
            if unattended || active.closing.is_cancelled() {
                let reason = format!("run `{id}` is {} and nobody drives it", record.status);
                return Err(Refusal::new(RefusalCode::TryLater, reason)
                    .with_remedy("start the host again to take it up, or cancel it"));
            }
            tokio::select! {
                biased;
                () = active.closing.cancelled() => {}
                _ = launches.changed() => {}
            }
        }
    }
}
