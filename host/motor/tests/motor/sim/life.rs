//! The lives of one host: each has a runtime of its own, and the disk and the world outside go on to the next. A life
//! ends like a process does, at once and with everything in it, or by a shutdown.

use std::sync::Arc;
use std::time::Duration;

use base::{Clock, Random, Timestamp};
use energy::EnergyBook;
use motor::{ListFilter, Motor, MotorConfig, MotorParts, RunRecord};
use signals::SignalBus;
use store::{DiskFault, SimulatedDisk, Store, StoreError, Table};

use super::chance::Chance;
use super::check::Stored;
use super::clock::VirtualClock;
use super::orders;
use super::outside::{Known, Outside};
use super::owner::People;
use super::tools::{SharedSurroundings, Surroundings};

const BEGIN: Timestamp = Timestamp::from_millis(1_767_225_600_000);
const LIVES: u64 = 5;
/// Acts of people in one life, more or less.
const ACTS: u64 = 40;
/// After this long without anybody doing anything, every run is over.
const PATIENCE: Duration = Duration::from_secs(7 * 24 * 3600);
/// A shutdown is over after this.
const SHUTDOWN: Duration = Duration::from_secs(60);
/// The longest time between two lives.
const DOWNTIME: Duration = Duration::from_secs(3_600);

/// A simulation of one seed.
pub struct Simulation {
    disk: Arc<SimulatedDisk>,
    pub outside: Arc<Outside>,
    people: Arc<Chance>,
    models: Arc<Chance>,
    tools: Arc<Chance>,
    fate: Chance,
    ids: Arc<Random>,
    pub crashes: u64,
}

impl Simulation {
    pub fn new(seed: u64) -> Self {
        Self {
            disk: SimulatedDisk::new(seed),
            outside: Arc::default(),
            people: Arc::new(Chance::new(seed, 1)),
            models: Arc::new(Chance::new(seed, 2)),
            tools: Arc::new(Chance::new(seed, 3)),
            fate: Chance::new(seed, 4),
            ids: Arc::new(Random::seeded(seed)),
            crashes: 0,
        }
    }

    /// All lives, and a last one in which nothing fails and everything comes to its end.
    pub fn run(&mut self) {
        let mut wall = BEGIN;
        for life in (0..2 + self.fate.below(LIVES)).rev() {
            wall = self.live(wall, life == 0);
            self.check();
            if !self.outside.known().broken.is_empty() {
                return;
            }
            wall = Timestamp::from_millis(wall.as_millis() + self.fate.span(DOWNTIME).as_millis() as u64);
        }
    }

    /// Checks the state on the disk, alone and against the facts known outside. Returns the runs that wait.
    fn check(&self) -> Vec<RunRecord> {
        let stored = Stored::on(&self.disk, self.outside.known().ahead);
        let broken = orders::broken(&stored, &self.outside.known());
        for what in stored.broken.iter().cloned().chain(broken) {
            self.outside.broken(what);
        }
        let runs = stored.runs.into_values().map(|run| run.record);
        runs.filter(|record| record.status.is_waiting()).collect()
    }

    /// Everything that was stored, said and done, as bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (table, key, value) in self.disk.records() {
            bytes.extend(format!("{table} {} ", key.escape_ascii()).into_bytes());
            bytes.extend(value);
            bytes.push(b'\n');
        }
        let Known { deliveries, orders, signals, shown, .. } = &*self.outside.known();
        bytes.extend(format!("{deliveries:#?}\n{orders:#?}\n{signals:#?}\n{shown:#?}").into_bytes());
        bytes
    }

    /// One life. Gives the time at its end.
    fn live(&mut self, wall: Timestamp, is_last: bool) -> Timestamp {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        self.disk.heal();
        let (end, is_crashed) = runtime.block_on(async {
            let clock = Arc::new(VirtualClock::starting_at(wall));
            self.outside.note(format!("{wall} the host starts"));
            let Some(store) = self.open() else { return (wall, false) };
            // Unacknowledged writes that reached the disk are visible now.
            let waiting = self.check();
            tokio::select! {
                biased;
                () = self.disk.crashed() => {}
                () = self.host(store, &clock, &waiting, is_last) => {}
            }
            (clock.now(), self.disk.is_crashed())
        });
        // Everything in it ends here, wherever it is.
        drop(runtime);
        self.crashes += u64::from(is_crashed);
        self.outside.note(format!("{end} the host ends, crashed: {is_crashed}"));
        end
    }

    async fn host(&self, store: Store, clock: &Arc<VirtualClock>, waiting: &[RunRecord], is_last: bool) {
        let signals = SignalBus::open(store.clone(), clock.clone()).unwrap();
        let energy = Arc::new(EnergyBook::open(store.clone(), clock.clone(), energy::EnergyConfig::default()));
        let (outside, tools, models) = (self.outside.clone(), self.tools.clone(), self.models.clone());
        let surroundings = Surroundings::new(store.clone(), self.disk.clone(), outside.clone(), tools, models);
        let motor = Motor::new(MotorParts {
            store: store.clone(),
            signals: signals.clone(),
            energy,
            clock: clock.clone(),
            random: self.ids.clone(),
            environment: Arc::new(SharedSurroundings(Arc::new(surroundings))),
            config: MotorConfig::default(),
        });
        let short_of_room = !is_last && self.fate.percent(30);
        let people = People {
            motor: motor.clone(),
            clock: clock.clone(),
            disk: self.disk.clone(),
            outside,
            chance: self.people.clone(),
            short_of_room,
        };
        if let Err(refusal) = motor.resume_all().await {
            self.outside.broken(format!("the host cannot start: {refusal}"));
        }
        self.still_waiting(&motor, clock, waiting);
        if is_last {
            // There is room again sooner or later, and everything goes on without being told.
            let shortage = if self.fate.percent(30) { self.fate.below(40) } else { 0 };
            for write in 0..shortage {
                self.disk.fail_at(self.disk.writes() + write, DiskFault::Full);
            }
            self.end(&motor, &signals).await;
        } else {
            for _ in 0..ACTS / 4 + self.fate.below(ACTS) {
                self.fault(short_of_room);
                people.act();
                tokio::time::sleep(self.pause()).await;
                self.hear(&signals);
                if self.fate.percent(10) {
                    let most = 2 * 3_600_000;
                    let jump = self.fate.below(2 * most) as i64 - most as i64;
                    self.outside.known().ahead += Duration::from_millis(jump.max(0) as u64);
                    clock.jump(jump);
                }
            }
            if self.fate.percent(60) {
                self.disk.crash();
                return;
            }
        }
        if tokio::time::timeout(SHUTDOWN, motor.shutdown()).await.is_err() {
            self.outside.broken("the shutdown does not end".into());
        }
        self.hear(&signals);
        match store.close().await {
            Ok(()) | Err(StoreError::Poisoned | StoreError::Full | StoreError::Io { .. }) => {}
            Err(error) => self.outside.broken(format!("the store does not close: {error}")),
        }
    }

    fn open(&self) -> Option<Store> {
        match Store::simulated(self.disk.clone()) {
            Ok(store) => Some(store),
            Err(error) => {
                self.outside.broken(format!("something of the last life is left: {error}"));
                None
            }
        }
    }

    /// From a moment to more than any timer.
    fn pause(&self) -> Duration {
        match self.fate.below(10) {
            0 => Duration::ZERO,
            1..6 => self.fate.span(Duration::from_secs(30)),
            _ => self.fate.span(Duration::from_secs(2_400)),
        }
    }

    /// Lets something go wrong at one of the next writes.
    fn fault(&self, short_of_room: bool) {
        let next = self.disk.writes() + self.fate.below(8);
        let reached = self.fate.percent(50);
        match self.fate.below(100) {
            0..3 => self.disk.fail_at(next, DiskFault::Crash { reached }),
            3..5 => self.disk.fail_at(next, DiskFault::Io { reached }),
            5..30 if short_of_room => {
                for write in next..next + 1 + self.fate.below(12) {
                    self.disk.fail_at(write, DiskFault::Full);
                }
            }
            _ => {}
        }
    }

    /// Checks that runs that waited when the host started wait for the same, unless their time has come.
    fn still_waiting(&self, motor: &Motor, clock: &VirtualClock, waiting: &[RunRecord]) {
        for before in waiting {
            let record = motor.record(&before.id);
            let expires = before.waiting.as_ref().map(motor::Waiting::expires_at);
            let is_same = record.as_ref().is_ok_and(|record| record.waiting == before.waiting);
            if !is_same && expires.is_some_and(|expires| expires > clock.now()) {
                self.outside.broken(format!("{:?} became {record:?}", before.waiting));
            }
        }
    }

    fn hear(&self, signals: &SignalBus) {
        let mut known = self.outside.known();
        let last = known.signals.last().map_or(0, |signal| signal.id);
        let Ok(new) = signals.since(last, usize::MAX) else { return };
        for signal in new {
            known.diary.push(format!("signal {}: {} {}", signal.id, signal.body.run_id, signal.body.status));
            known.signals.push(signal);
        }
    }

    /// Ends the simulation: without further commands every run comes to its end, and every slot is free.
    async fn end(&self, motor: &Motor, signals: &SignalBus) {
        let began = tokio::time::Instant::now();
        let open = || {
            let mut all = motor.list(ListFilter { limit: usize::MAX, ..ListFilter::default() }).unwrap();
            all.retain(|record| !record.status.is_terminal());
            all
        };
        while !open().is_empty() {
            if began.elapsed() > PATIENCE {
                return self.outside.broken(format!("after a week: {:?}", open()));
            }
            tokio::time::sleep(Duration::from_secs(600)).await;
        }
        self.hear(signals);
        let held = self
            .disk
            .records()
            .into_iter()
            .filter(|(table, key, _)| *table == Table::Places && key.starts_with(b"agent/"));
        let held: Vec<_> = held.map(|(_, key, _)| String::from_utf8_lossy(&key).into_owned()).collect();
        if !held.is_empty() {
            self.outside.broken(format!("nobody works, and places are held: {held:?}"));
        }
    }
}
