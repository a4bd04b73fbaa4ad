//! How long a test waits: as long as the programs it started are at work. On a busy machine they take longer, and that is no
//! failure; one that hangs is found soon.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

/// How often the programs are looked at.
const WINDOW: Duration = Duration::from_secs(30);

/// Processor time in a window below which nothing is going on, in hundredths of a second. A host that idles takes less, one
/// that compiles far more, even when it shares its processor with ten others.
const IDLE: u64 = 100;

/// The longest that anything may take, for a program that computes forever.
pub const MAX_WAIT: Duration = Duration::from_secs(600);

/// The longest that "at once" may take on a busy machine, where the alternative takes half a minute or an hour.
pub const AT_ONCE: Duration = Duration::from_secs(10);

/// A wait. Processes that a test starts only to look must not run when it is asked.
#[derive(Debug)]
pub struct Patience {
    began: Instant,
    looked: Instant,
    used: HashMap<u32, u64>,
}

impl Default for Patience {
    fn default() -> Self {
        let now = Instant::now();
        Self { began: now, looked: now, used: processor_time() }
    }
}

impl Patience {
    /// Whether to wait longer.
    pub fn lasts(&mut self) -> bool {
        if self.looked.elapsed() < WINDOW {
            return true;
        }
        let now = processor_time();
        let gained: u64 =
            now.iter().map(|(pid, time)| time - self.used.get(pid).copied().unwrap_or(0).min(*time)).sum();
        self.looked = Instant::now();
        self.used = now;
        gained >= IDLE && self.began.elapsed() < MAX_WAIT
    }
}

/// The processor time of every process below this one, by its id.
fn processor_time() -> HashMap<u32, u64> {
    let processes: HashMap<u32, (u32, u64)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid: u32| Some((pid, of_process(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?)))
        .collect();
    let own = std::process::id();
    let is_below = |pid: u32| {
        let parent = |pid: &u32| processes.get(pid).map(|(parent, _)| *parent);
        std::iter::successors(parent(&pid), parent).any(|ancestor| ancestor == own)
    };
    processes.iter().filter(|(pid, _)| is_below(**pid)).map(|(pid, (_, time))| (*pid, *time)).collect()
}

/// The parent of a process and its processor time, from its line in `proc(5)`. Its name may contain spaces and parentheses. The time of
/// children that have ended counts, too: a compiler that worked for most of a window may be gone at its end.
fn of_process(stat: &str) -> Option<(u32, u64)> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let times = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok());
    Some((fields.get(1)?.parse().ok()?, times.sum::<Option<u64>>()?))
}
