//! Triggers (SPEC CX-2): facts that start a cycle, judged without a model.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Activity, CortexConfig};

/// The reason for a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Trigger {
    /// There were enough interactions.
    InteractionCount,
    /// A peer is new.
    NewPeer,
    /// A promise was not kept in time.
    Overdue,
    /// Enough time has passed, and there was activity.
    Timer,
    /// The owner asked for it.
    Owner,
}

impl Trigger {
    /// The name in JSON and events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InteractionCount => "interaction_count",
            Self::NewPeer => "new_peer",
            Self::Overdue => "overdue",
            Self::Timer => "timer",
            Self::Owner => "owner",
        }
    }
}

/// The triggers that apply. Several make one cycle.
pub(crate) fn due(activity: Activity, since_last: Duration, config: &CortexConfig) -> Vec<Trigger> {
    if !config.enabled {
        return Vec::new();
    }
    let triggers = config.triggers;
    let is_active = activity != Activity::default();
    let judged = [
        (Trigger::InteractionCount, triggers.interaction_count && activity.interactions >= config.interaction_count),
        (Trigger::NewPeer, triggers.new_peer && activity.new_peers > 0),
        (Trigger::Overdue, triggers.overdue && activity.overdue > 0),
        (Trigger::Timer, triggers.timer && is_active && since_last >= config.schedule()),
    ];
    judged.into_iter().filter_map(|(trigger, applies)| applies.then_some(trigger)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TriggerConfig;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn check(activity: Activity, since: Duration, expected: &[Trigger]) {
        assert_eq!(due(activity, since, &CortexConfig::default()), expected, "{activity:?} {since:?}");
    }

    #[test]
    fn facts_start_a_cycle() {
        let none = Activity::default();
        check(none, HOUR * 100, &[]);
        check(Activity { interactions: 4, ..none }, HOUR / 2 - Duration::from_millis(1), &[]);
        check(Activity { interactions: 5, ..none }, Duration::ZERO, &[Trigger::InteractionCount]);
        check(Activity { tool_calls: 1, ..none }, HOUR / 2, &[Trigger::Timer]);
        check(Activity { interactions: 1, new_peers: 1, ..none }, Duration::ZERO, &[Trigger::NewPeer]);
        check(Activity { overdue: 1, ..none }, Duration::ZERO, &[Trigger::Overdue]);
        let all = Activity { interactions: 9, new_peers: 2, overdue: 1, ..none };
        check(all, HOUR, &[Trigger::InteractionCount, Trigger::NewPeer, Trigger::Overdue, Trigger::Timer]);
    }

    #[test]
    fn each_can_be_switched_off() {
        let all = Activity { interactions: 9, new_peers: 2, overdue: 1, ..Activity::default() };
        let triggers = TriggerConfig::default();
        for (triggers, missing) in [
            (TriggerConfig { timer: false, ..triggers }, Trigger::Timer),
            (TriggerConfig { interaction_count: false, ..triggers }, Trigger::InteractionCount),
            (TriggerConfig { new_peer: false, ..triggers }, Trigger::NewPeer),
            (TriggerConfig { overdue: false, ..triggers }, Trigger::Overdue),
        ] {
            let found = due(all, HOUR, &CortexConfig { triggers, ..CortexConfig::default() });
            assert!(found.len() == 3 && !found.contains(&missing), "{missing:?}: {found:?}");
        }
        assert!(due(all, HOUR, &CortexConfig { enabled: false, ..CortexConfig::default() }).is_empty());
    }
}
