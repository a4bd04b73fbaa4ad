//! Every limit of one guest call: named, with unit, default and reason (SPEC HOST-5). A policy may only lower them.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fuel between two checks of the deadline and the cancellation: well under a millisecond of JavaScript if a branch
/// costs one, and of the slowest instructions if each costs one.
pub(crate) const YIELD_INTERVAL: u64 = 100_000;

/// Declares each limit once: its documented name and its default.
macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $default:expr,)*) => {
        /// The limits of one call. A guest that exceeds one ends with an error that names it; the host and other guests
        /// go on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct Limits {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default),* }
            }
        }

        impl Limits {
            /// The lower of the two in every limit: applies a policy to the host's configuration.
            #[must_use]
            pub fn lowered_to(self, policy: &Self) -> Self {
                Self { $($name: self.$name.min(policy.$name)),* }
            }
        }
    };
}

limits! {
    /// Units of work: in bundled components one for each function entry and each branch, in others one for nearly every
    /// instruction. Default 20,000,000,000: more than the deadline allows, so that the deadline is reached first; lower
    /// it to bound work independently of the machine's speed.
    fuel: 20_000_000_000,
    /// Wall-clock milliseconds. Default 10,000 (SPEC TOOL-3).
    deadline_ms: 10_000,
    /// Bytes over all linear memories. Default 64 MiB.
    memory_bytes: 64 << 20,
    /// Elements over all tables. Default 20,000: a table holds a pointer for each function that can be called through
    /// it.
    table_elements: 20_000,
    /// Core instances, linear memories and tables, each. Default 64: componentize-py makes 14 to 38 instances. The
    /// engine's own limits for one component are 64, 8 and 32.
    instances: 64,
    /// Bytes the guest hands to the host in one host call, or as its result. Default 8 MiB.
    hostcall_bytes: 8 << 20,
    /// Open handles: files, streams, pollables. Default 512.
    handles: 512,
    /// Bytes of randomness. Default 1 MiB.
    random_bytes: 1 << 20,
    /// Bytes of a tool's result. Default 4 MiB; a run shows a model far less (SPEC RUN-9).
    output_bytes: 4 << 20,
    /// Bytes written to standard output and error together. Default 256 KiB.
    stdio_bytes: 256 << 10,
    /// Log lines and progress reports. Default 1,000.
    log_lines: 1_000,
    /// Bytes of log lines and progress reports. Default 64 KiB.
    log_bytes: 64 << 10,
    /// Crossings into the host: calls, and a yield for each 100,000 units of fuel. Default 100,000,000: the shell makes
    /// a few for each step of a script, and an endless script is ended by its deadline.
    host_calls: 100_000_000,
    /// Bytes of files in the workspace. Default 256 MiB.
    workspace_bytes: 256 << 20,
    /// Files and directories in the workspace. Default 10,000.
    workspace_files: 10_000,
    /// Requests to the network, refused ones included. Default 100: enough for a page and its resources, not for a
    /// crawl.
    outgoing_requests: 100,
    /// Bytes of request bodies and headers together. Default 10 MiB.
    request_bytes: 10 << 20,
    /// Bytes of response bodies together. Default 64 MiB: as much as the guest's memory could hold.
    response_bytes: 64 << 20,
    /// Bytes of one set of HTTP header fields in the host's memory, bookkeeping included. Default 64 KiB: eight times
    /// the usual limit of servers.
    http_header_bytes: 64 << 10,
}

/// The least memory of a call that the bundled tools run with: the shell begins with 3.4 MiB.
const MIN_MEMORY_BYTES: u64 = 4 << 20;

impl Limits {
    /// Checks that a call of a bundled tool can begin with these limits as the host's own.
    ///
    /// # Errors
    /// With the first that is too low, in words that name the key and its range.
    pub fn check(&self) -> Result<(), String> {
        let least = [
            ("fuel", self.fuel, 1),
            ("deadline_ms", self.deadline_ms, 1),
            ("memory_bytes", self.memory_bytes, MIN_MEMORY_BYTES),
        ];
        let low = least.into_iter().find(|(_, value, least)| value < least);
        low.map_or(Ok(()), |(key, value, least)| {
            Err(format!("`limits.{key}` is {value}: use a whole number, at least {least}"))
        })
    }

    /// The same limits with another deadline.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// The wall-clock deadline as a duration.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_only_lowers() {
        let host = Limits::default();
        let policy = Limits { fuel: 5, memory_bytes: u64::MAX, ..host };
        assert_eq!(host.lowered_to(&policy), Limits { fuel: 5, ..host });
    }

    /// Limits as a map, to change each in turn: one that is added later is tested too.
    fn fields(limits: Limits) -> serde_json::Map<String, serde_json::Value> {
        serde_json::to_value(limits).unwrap().as_object().unwrap().clone()
    }

    fn with(name: &str, value: u64) -> Limits {
        let mut changed = fields(Limits::default());
        assert!(changed.insert(name.to_owned(), value.into()).is_some(), "{name}");
        serde_json::from_value(changed.into()).unwrap()
    }

    #[test]
    fn a_policy_lowers_each_limit_alone_and_raises_none() {
        let host = Limits::default();
        let all = fields(host);
        assert_eq!(all.len(), 19);
        for (name, value) in all {
            let value = value.as_u64().unwrap();
            for lower in [0, 1, value - 1] {
                let policy = with(&name, lower);
                assert_eq!(host.lowered_to(&policy), policy, "{name} to {lower}");
                assert_eq!(policy.lowered_to(&host), policy, "{name} from {lower}");
            }
            for higher in [value, value + 1, u64::MAX] {
                assert_eq!(host.lowered_to(&with(&name, higher)), host, "{name} to {higher}");
            }
        }
    }

    #[test]
    fn a_call_can_begin_with_each_least_value_and_with_no_lower_one() {
        Limits::default().check().unwrap();
        for (key, least) in [("fuel", 1), ("deadline_ms", 1), ("memory_bytes", 4_194_304)] {
            with(key, least).check().unwrap();
            let error = with(key, least - 1).check().unwrap_err();
            assert!(error.contains(&format!("`limits.{key}` is {}", least - 1)), "{error}");
            assert!(error.contains(&format!("at least {least}")), "{error}");
        }
    }

    #[test]
    fn a_deadline_is_in_milliseconds() {
        for (deadline, milliseconds) in [
            (Duration::ZERO, 0),
            (Duration::from_micros(1_999), 1),
            (Duration::from_secs(90), 90_000),
            (Duration::MAX, u64::MAX),
        ] {
            let limits = Limits::default().with_deadline(deadline);
            assert_eq!(limits, with("deadline_ms", milliseconds), "{deadline:?}");
            assert_eq!(limits.deadline(), Duration::from_millis(milliseconds));
        }
    }
}
