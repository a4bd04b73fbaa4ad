//! Order statistics and a line of a report.

use std::time::Duration;

/// The times of one measured thing.
#[derive(Default)]
pub struct Times(Vec<Duration>);

impl Times {
    pub fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub fn append(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    pub fn longest(&self) -> Duration {
        self.0.iter().max().copied().unwrap_or_default()
    }

    /// The time below which `share` of them lie, in milliseconds; 0 if there are no times.
    pub fn quantile(&mut self, share: f64) -> f64 {
        self.0.sort_unstable();
        let last = self.0.len().saturating_sub(1);
        let index = ((last as f64) * share).round() as usize;
        self.0.get(index).map_or(0.0, |time| time.as_secs_f64() * 1_000.0)
    }

    pub fn p50(&mut self) -> f64 {
        self.quantile(0.5)
    }

    pub fn p99(&mut self) -> f64 {
        self.quantile(0.99)
    }
}

/// One measured figure beside its aim, at most or at least.
pub fn line(what: &str, measured: f64, unit: &str, aim: Option<Aim>) {
    let verdict = aim.map_or_else(String::new, |aim| {
        let (met, sign, bound) = match aim {
            Aim::AtMost(bound) => (measured <= bound, "<=", bound),
            Aim::AtLeast(bound) => (measured >= bound, ">=", bound),
        };
        format!("  aim {sign} {bound} {unit}  {}", if met { "met" } else { "MISSED" })
    });
    println!("  {what:<44} {measured:>12.3} {unit}{verdict}");
}

/// The aim of a figure, inclusive.
pub enum Aim {
    AtMost(f64),
    AtLeast(f64),
}
