//! The remainder of a limit that all requests of a call share.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::GateError;

/// A limit, and how much of it is used. Requests that run at the same time draw on it together.
#[derive(Debug)]
pub(crate) struct CallBudget {
    limit: &'static str,
    most: u64,
    used: AtomicU64,
}

impl CallBudget {
    pub(crate) fn new(limit: &'static str, most: u64) -> Self {
        Self { limit, most, used: AtomicU64::new(0) }
    }

    /// Takes from it; all or nothing.
    pub(crate) fn take(&self, amount: u64) -> Result<(), GateError> {
        let fits = |used: u64| used.checked_add(amount).filter(|used| *used <= self.most);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.map(drop).map_err(|_| GateError::Limit { limit: self.limit, value: self.most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_never_overdrawn() {
        let budget = CallBudget::new("request_bytes", 10);
        assert_eq!(budget.take(7), Ok(()));
        for amount in [4, u64::MAX] {
            assert_eq!(budget.take(amount), Err(GateError::Limit { limit: "request_bytes", value: 10 }));
        }
        assert_eq!(budget.take(3), Ok(()));
        assert!(budget.take(1).is_err());
        assert_eq!(budget.take(0), Ok(()));
    }
}
