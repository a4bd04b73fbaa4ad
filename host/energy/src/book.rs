//! The levels of the agents, in memory and in the store.
//!
//! A drain counts in memory at once, and is stored in the batch of the act that it pays for. Two acts may stage their
//! drains and commit in the other order, or one of them never; so each drain is a record of its own number, which holds
//! the level after it and after all before it, and the greatest number is the one that counts. In any order, no
//! committed drain is forgotten; one that was never committed may stay counted, never the reverse.
//!
//! While a book is open, time is measured by its monotonic clock: a wall clock that is set gives no energy and takes none. Between
//! two hosts there is only the wall clock. A drain is stored with the later of the two, so that a clock that was set forward in
//! between gives nothing to the next host. One that went back is waited for, so that it cannot give the same hours twice; one
//! that went back by more than a day was wrong before, and counts from its present time.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use base::{AgentName, Clock, HostTime, Refusal, RefusalCode, Timestamp};
use parking_lot::Mutex;
use store::{Batch, Scan, Store, StoreError, Table};

use crate::level::EnergyLevel;
use crate::{Activity, EnergyConfig};

/// The energy of a home's agents. Cheap to clone.
#[derive(Debug, Clone)]
pub struct EnergyBook {
    pub(crate) inner: Arc<EnergyInner>,
}

#[derive(Debug)]
pub(crate) struct EnergyInner {
    store: Store,
    time: HostTime,
    pub(crate) config: EnergyConfig,
    accounts: Mutex<HashMap<AgentName, Account>>,
}

/// How far behind a stored level the wall clock of a new host may be and still be waited for.
const MAX_BEHIND: Duration = Duration::from_secs(24 * 3_600);

/// The known state of an agent.
#[derive(Debug)]
struct Account {
    level: EnergyLevel,
    /// How far the wall clock was behind the stored level when the book was opened.
    behind: Duration,
    /// The latest time of a stored level: a clock that is set back within a host's life gives the next host nothing.
    noted: Timestamp,
    /// The number of the last staged record.
    number: u64,
    /// Records that are no longer needed: they go with the next drain.
    outdated: Vec<Vec<u8>>,
}

/// The effect of a drain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DrainedEnergy {
    /// The price of the activity; near the floor the level loses less.
    pub cost: f64,
    /// The level after it.
    pub level: f64,
}

impl EnergyBook {
    /// Reads levels from `store` as they are asked for. `config` should have passed [`EnergyConfig::validate`].
    #[must_use]
    pub fn open(store: Store, clock: Arc<dyn Clock>, config: EnergyConfig) -> Self {
        let time = HostTime::starting(clock);
        Self { inner: Arc::new(EnergyInner { store, time, config, accounts: Mutex::default() }) }
    }

    /// The wall clock as it was when the book was opened, and the time since.
    fn now(&self) -> Timestamp {
        self.inner.time.steady()
    }

    /// The agent's level now, from the floor to 1. A new agent has 1.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn level(&self, agent: &AgentName) -> Result<f64, StoreError> {
        Ok(self.level_now(agent)?.shown(&self.inner.config))
    }

    /// Whether the agent has the energy to begin this (SPEC EN-3). The consequences of an act are always
    /// possible, and so is everything if the energy model is switched off.
    ///
    /// # Errors
    /// A refusal `energy_too_low` that names the level, the one needed, and when it will be reached.
    pub fn check(&self, agent: &AgentName, activity: Activity) -> Result<(), Refusal> {
        let config = &self.inner.config;
        let Some(gate) = activity.gate(config).filter(|_| config.enabled) else { return Ok(()) };
        let level = self.level_now(agent)?;
        if level.opens(gate, config) {
            return Ok(());
        }
        let (needed, words) = match gate {
            crate::activity::EnergyGate::AtLeast(needed) => (needed, "at least"),
            crate::activity::EnergyGate::Above(needed) => (needed, "more than"),
        };
        let shown = level.shown(config);
        let tired = if shown <= config.thresholds.oneshot { "too tired to act: " } else { "" };
        let mut reason = format!("{tired}energy is {shown:.2}, and {} needs {words} {needed:.2}", activity.name());
        let remedy = match level.wait(gate, config) {
            Some(wait) => {
                let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                let when = Timestamp::from_millis(level.at.as_millis().saturating_add(millis));
                // Writing to a string cannot fail.
                write!(reason, "; it will be enough at {when} (in {})", words_for(wait)).ok();
                format!("ask again in {}", words_for(wait))
            }
            None => {
                reason.push_str("; with the configured recharge it will not be enough within a year");
                "raise `energy.recharge_per_hour`, or switch the model off with `energy.enabled = false`".to_owned()
            }
        };
        Err(Refusal::new(RefusalCode::EnergyTooLow, reason).with_remedy(remedy))
    }

    /// Drains the cost of the activity, and puts the new level into `batch`. The drain counts from now on, and lasts when
    /// the batch is committed. Several drains may go into one batch.
    ///
    /// # Errors
    /// If the store cannot be read, or the record cannot be stored.
    pub async fn stage_drain(
        &self,
        batch: &mut Batch,
        agent: &AgentName,
        activity: Activity,
    ) -> Result<DrainedEnergy, StoreError> {
        let config = &self.inner.config;
        if !config.enabled {
            return Ok(DrainedEnergy { cost: 0.0, level: self.level(agent)? });
        }
        let cost = activity.cost(config);
        let mut accounts = self.inner.accounts.lock();
        let account = self.account(&mut accounts, agent)?;
        let level = account.level.drained(cost, self.now().after(account.behind), config);
        let number = account.number.saturating_add(1);
        let key = record_key(agent, number);
        // The next host reads it by a wall clock that may have been set forward in this one's life.
        account.noted = account.noted.max(level.at).max(self.inner.time.latest());
        let stored = EnergyLevel { at: account.noted, ..level };
        batch.put(Table::Energy, key.clone(), &stored)?;
        for outdated in account.outdated.drain(..) {
            batch.delete(Table::Energy, outdated);
        }
        account.outdated.push(key);
        account.level = level;
        account.number = number;
        Ok(DrainedEnergy { cost, level: level.shown(config) })
    }

    fn level_now(&self, agent: &AgentName) -> Result<EnergyLevel, StoreError> {
        let mut accounts = self.inner.accounts.lock();
        let account = self.account(&mut accounts, agent)?;
        account.level = account.level.at(self.now().after(account.behind), &self.inner.config);
        Ok(account.level)
    }

    fn account<'a>(
        &self,
        accounts: &'a mut HashMap<AgentName, Account>,
        agent: &AgentName,
    ) -> Result<&'a mut Account, StoreError> {
        use std::collections::hash_map::Entry;
        Ok(match accounts.entry(agent.clone()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(self.read_account(agent)?),
        })
    }

    fn read_account(&self, agent: &AgentName) -> Result<Account, StoreError> {
        let records = self.inner.store.scan::<EnergyLevel>(Table::Energy, &Scan::prefix(record_prefix(agent)))?;
        let newest = records.last().and_then(|(key, level)| Some((number_of(key)?, *level)));
        let opened = self.inner.time.started();
        let (number, mut level) = newest.unwrap_or_else(|| (0, EnergyLevel::full(opened)));
        let mut behind = level.at.since(opened);
        if behind > MAX_BEHIND {
            (level.at, behind) = (opened, Duration::ZERO);
        }
        Ok(Account {
            level,
            behind,
            noted: level.at,
            number,
            outdated: records.into_iter().map(|(key, _)| key).collect(),
        })
    }
}

/// The agent's name, a zero byte that no name has, and the record's number.
fn record_key(agent: &AgentName, number: u64) -> Vec<u8> {
    let mut key = record_prefix(agent);
    key.extend(number.to_be_bytes());
    key
}

fn record_prefix(agent: &AgentName) -> Vec<u8> {
    let mut prefix = agent.as_str().as_bytes().to_vec();
    prefix.push(0);
    prefix
}

fn number_of(key: &[u8]) -> Option<u64> {
    key.last_chunk().map(|number| u64::from_be_bytes(*number))
}

/// A wait in words, rounded up, so that who asks again then is not too early.
fn words_for(wait: Duration) -> String {
    let minutes = wait.as_secs().div_ceil(60).max(1);
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests;
