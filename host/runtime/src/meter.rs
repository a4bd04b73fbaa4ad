//! The resource limiter of a Wasmtime store: it bounds the total memory and the total table elements of a call, not each
//! memory or table on its own.

use capabilities::{Limit, LimitExceeded};
use wasmtime::ResourceLimiter;

use crate::limits::Limits;

/// Counts the resources of a call's instances. Exceeding a limit of the host ends the guest rather than failing the growth: a guest
/// that survives a failed allocation would go on with less memory, and the limit would never be reported.
#[derive(Debug)]
pub struct Meter {
    memory_limit: usize,
    memory: usize,
    memory_peak: usize,
    table_limit: usize,
    table_elements: usize,
    /// Maximum number of instances, of tables and of memories: the same for each.
    max_count: usize,
}

impl Meter {
    pub fn new(limits: &Limits) -> Self {
        let clamp = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        Self {
            memory_limit: clamp(limits.memory_bytes),
            memory: 0,
            memory_peak: 0,
            table_limit: clamp(limits.table_elements),
            table_elements: 0,
            max_count: clamp(limits.instances),
        }
    }

    pub fn memory_peak(&self) -> u64 {
        self.memory_peak as u64
    }
}

fn check_growth(
    total: usize,
    current: usize,
    desired: usize,
    maximum: usize,
    limit: Limit,
) -> Result<usize, LimitExceeded> {
    match total.checked_add(desired.saturating_sub(current)) {
        Some(total) if total <= maximum => Ok(total),
        _ => Err(LimitExceeded { limit, value: maximum as u64 }),
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let total = check_growth(self.memory, current, desired, self.memory_limit, Limit::MemoryBytes)?;
        // Growth beyond the maximum that the guest itself declares fails, and its allocator handles that.
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.memory = total;
        self.memory_peak = self.memory_peak.max(total);
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let total = check_growth(self.table_elements, current, desired, self.table_limit, Limit::TableElements)?;
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.table_elements = total;
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.max_count
    }

    fn tables(&self) -> usize {
        self.max_count
    }

    fn memories(&self) -> usize {
        self.max_count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_count_together() {
        let mut meter = Meter::new(&Limits { memory_bytes: 100, ..Limits::default() });
        assert!(meter.memory_growing(0, 60, None).unwrap());
        assert!(meter.memory_growing(0, 40, None).unwrap());
        let error = meter.memory_growing(40, 41, None).unwrap_err();
        assert_eq!(error.downcast_ref::<LimitExceeded>().unwrap().limit, Limit::MemoryBytes);
        assert_eq!(meter.memory_peak(), 100);
        assert!(!Meter::new(&Limits::default()).memory_growing(0, 20, Some(10)).unwrap());
    }
}
