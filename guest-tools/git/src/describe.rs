//! Short names of objects, as long as they have to be.

use std::cell::OnceCell;

use gix_hash::{ObjectId, Prefix};

use crate::error::Result;
use crate::objects::HASH;
use crate::repository::Repository;

/// The fewest digits that git prints.
const MIN_DIGITS: usize = 7;

/// Makes short names of objects that are unique.
pub(crate) struct Short<'a> {
    repository: &'a Repository,
    digits: OnceCell<usize>,
    /// All digits (`--full-index`, `--no-abbrev`).
    full: bool,
}

impl<'a> Short<'a> {
    pub(crate) fn new(repository: &'a Repository) -> Self {
        Self { repository, digits: OnceCell::new(), full: false }
    }

    /// With a number of digits in place of the repository's.
    pub(crate) fn with_digits(repository: &'a Repository, digits: usize) -> Self {
        let short = Self::new(repository);
        // A fresh cell takes its first value.
        let _first = short.digits.set(digits.clamp(4, HASH.len_in_hex())).is_ok();
        short
    }

    pub(crate) fn full(repository: &'a Repository) -> Self {
        Self { full: true, ..Self::new(repository) }
    }

    /// The shortest name that is not another object's too.
    pub(crate) fn of(&self, id: &ObjectId) -> Result<String> {
        let hex = id.to_hex().to_string();
        if self.full {
            return Ok(hex);
        }
        let least = self.digits()?;
        if id.is_null() {
            return Ok(hex.chars().take(least).collect());
        }
        let mut digits = least;
        while digits < hex.len() {
            let Ok(prefix) = Prefix::new(id, digits) else { break };
            let others = self.repository.objects.beginning_with(&prefix, 2)?;
            if others.iter().all(|other| other == id) {
                break;
            }
            digits = digits.saturating_add(1);
        }
        Ok(hex.chars().take(digits).collect())
    }

    fn digits(&self) -> Result<usize> {
        if let Some(digits) = self.digits.get() {
            return Ok(*digits);
        }
        let configured = self.repository.config.integer("core.abbrev").and_then(|digits| usize::try_from(digits).ok());
        let digits = match configured {
            Some(digits) => digits.clamp(4, HASH.len_in_hex()),
            // Half as many bits as it takes to number the objects make a clash unlikely.
            None => {
                let count = self.repository.objects.packed_count()?;
                let bits = u64::BITS.saturating_sub(count.leading_zeros());
                usize::try_from(bits.div_ceil(2)).unwrap_or(MIN_DIGITS).max(MIN_DIGITS)
            }
        };
        Ok(*self.digits.get_or_init(|| digits))
    }
}
