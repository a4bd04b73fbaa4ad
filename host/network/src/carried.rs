//! How much the reads of a run carry outwards after it has read from the web (SPEC TAINT-1): the bounds, and the sums.

use std::collections::BTreeMap;

use crate::target::Host;
use crate::values::CarriedBytes;
use crate::{Grant, NetworkConfig, Target};

/// Hosts that are counted one by one; more are counted together.
const MAX_PLACES: usize = 1024;

/// The data that reads may carry, in bytes beyond the user's words and the values of their own host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CarryLimits {
    /// Bytes of one read.
    request: u64,
    /// One read from a host that only a wildcard grants.
    foreign_request: u64,
    /// All reads of a run from one host.
    run: u64,
}

impl CarryLimits {
    pub(crate) fn of(config: &NetworkConfig) -> Self {
        Self {
            request: config.carried_bytes,
            foreign_request: config.carried_foreign_bytes,
            run: config.carried_bytes_per_run,
        }
    }
}

/// A read carries more than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excess {
    /// Bytes that it carries, or with which the reads of the run from its host would have carried so much.
    pub bytes: u64,
    /// Bytes that it may carry.
    pub most: u64,
    /// The setting in `[network]` that says so.
    pub setting: &'static str,
}

/// The data that the reads of a run have carried so far, by host.
#[derive(Debug, Default)]
pub(crate) struct CarriedData(BTreeMap<String, u64>);

impl CarriedData {
    /// The bound that a read with so many bytes exceeds.
    pub(crate) fn excess(
        &self,
        target: &Target,
        grant: Grant,
        bytes: CarriedBytes,
        bounds: &CarryLimits,
    ) -> Option<Excess> {
        let (most, setting) = match grant {
            Grant::Exact => (bounds.request, "carried_bytes"),
            Grant::Wide => (bounds.foreign_request, "carried_foreign_bytes"),
        };
        if bytes.request > most {
            return Some(Excess { bytes: bytes.request, most, setting });
        }
        let total = self.0.get(&self.place(target, grant)).copied().unwrap_or_default() + bytes.run;
        (bytes.run > 0 && total > bounds.run).then_some(Excess {
            bytes: total,
            most: bounds.run,
            setting: "carried_bytes_per_run",
        })
    }

    /// Counts a read that leaves.
    pub(crate) fn add(&mut self, target: &Target, grant: Grant, bytes: u64) {
        if bytes > 0 {
            *self.0.entry(self.place(target, grant)).or_default() += bytes;
        }
    }

    /// Under a wildcard the names below one domain count together: the owner of a domain makes as many as they like.
    fn place(&self, target: &Target, grant: Grant) -> String {
        let place = match (target.host(), grant) {
            (Host::Name(name), Grant::Wide) => psl::domain_str(name).unwrap_or(name).to_owned(),
            (host, _) => host.to_string(),
        };
        if self.0.len() < MAX_PLACES || self.0.contains_key(&place) { place } else { String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excess(carried: &CarriedData, url: &str, grant: Grant, bytes: u64) -> Option<(u64, u64, &'static str)> {
        let bounds = CarryLimits::of(&NetworkConfig::default());
        let bytes = CarriedBytes { request: bytes, run: bytes };
        let excess = carried.excess(&Target::parse(url).unwrap(), grant, bytes, &bounds);
        excess.map(|excess| (excess.bytes, excess.most, excess.setting))
    }

    #[test]
    fn one_read_and_all_reads_of_a_host_are_bounded() {
        let mut carried = CarriedData::default();
        let url = "https://a.example.com/";
        for (grant, bytes, expected) in [
            (Grant::Exact, 0, None),
            (Grant::Exact, 32, None),
            (Grant::Exact, 33, Some((33, 32, "carried_bytes"))),
            (Grant::Wide, 8, None),
            (Grant::Wide, 9, Some((9, 8, "carried_foreign_bytes"))),
        ] {
            assert_eq!(excess(&carried, url, grant, bytes), expected, "{grant:?} {bytes}");
        }
        for _ in 0..8 {
            assert_eq!(excess(&carried, url, Grant::Exact, 32), None);
            carried.add(&Target::parse(url).unwrap(), Grant::Exact, 32);
        }
        assert_eq!(excess(&carried, url, Grant::Exact, 1), Some((257, 256, "carried_bytes_per_run")));
        assert_eq!(excess(&carried, url, Grant::Exact, 0), None, "what carries nothing is never too much");
        assert_eq!(excess(&carried, "https://b.example.com/", Grant::Exact, 32), None, "another host");
    }

    #[test]
    fn names_below_one_domain_share_under_a_wildcard() {
        let mut carried = CarriedData::default();
        for number in 0..32 {
            let url = format!("https://h{number}.example.co.uk/");
            assert_eq!(excess(&carried, &url, Grant::Wide, 8), None, "{url}");
            carried.add(&Target::parse(&url).unwrap(), Grant::Wide, 8);
        }
        assert!(excess(&carried, "https://new.example.co.uk/", Grant::Wide, 1).is_some());
        assert_eq!(excess(&carried, "https://other.co.uk/", Grant::Wide, 8), None);
        for number in 0..2 * MAX_PLACES {
            carried.add(&Target::parse(&format!("https://site{number}.org/")).unwrap(), Grant::Wide, 1);
        }
        assert_eq!(carried.0.len(), MAX_PLACES + 1);
    }
}
