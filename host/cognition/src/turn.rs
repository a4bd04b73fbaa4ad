//! The state machine of a turn: one enum, one `transition`. A turn begins with a trigger, alternates between asking the model and
//! executing the calls of its reply, and ends once.
//!
//! It knows no store and no model: the journal commits each state together with the entry that led to it, so a turn that was
//! interrupted by a crash goes on from its last entry.

use serde::{Deserialize, Serialize};

/// The kind of the trigger of a turn. It decides which tools exist in the turn (SPEC CONSENT-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerKind {
    /// A message of the owner, through an authenticated door.
    OwnerMessage,
    /// A message of anyone else.
    PeerMessage,
    /// A signal of a run (`motor_result`), or a note of the host, in a conversation of the owner.
    Signal,
}

/// The work that comes next in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TurnPhase {
    /// The model is asked.
    Thinking,
    /// The calls of a reply are executed in order.
    Acting {
        /// The entry with the reply.
        reply: u64,
        /// The number of its calls.
        calls: u32,
        /// The number of calls with a durable outcome, less than `calls`.
        done: u32,
    },
    /// The reply has no calls, and the turn only has to be closed.
    Replied,
}

/// A turn under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Turn {
    /// The entry that the turn reacts to.
    pub trigger: u64,
    pub kind: TriggerKind,
    pub phase: TurnPhase,
    /// Replies of the model so far.
    pub replies: u32,
    /// Whether the turn has said something to the other side.
    pub has_spoken: bool,
}

/// A step of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnEvent {
    Began { trigger: u64, kind: TriggerKind },
    Replied { reply: u64, calls: u32 },
    Returned,
    Said,
    Ended,
}

/// A step that the state of the turn does not allow: the journal is damaged, or two workers act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a turn in the state {turn:?} cannot take the step {event:?}")]
pub(crate) struct IllegalStep {
    turn: Option<Turn>,
    event: TurnEvent,
}

/// The state after a step; `None` between turns.
///
/// # Errors
/// If the step is not allowed in this state.
pub(crate) fn transition(turn: Option<Turn>, event: TurnEvent) -> Result<Option<Turn>, IllegalStep> {
    let illegal = IllegalStep { turn, event };
    match (turn, event) {
        (None, TurnEvent::Began { trigger, kind }) => {
            Ok(Some(Turn { trigger, kind, phase: TurnPhase::Thinking, replies: 0, has_spoken: false }))
        }
        (Some(turn), TurnEvent::Replied { reply, calls }) if turn.phase == TurnPhase::Thinking => {
            let phase = if calls == 0 { TurnPhase::Replied } else { TurnPhase::Acting { reply, calls, done: 0 } };
            Ok(Some(Turn { phase, replies: turn.replies.saturating_add(1), ..turn }))
        }
        (Some(turn), TurnEvent::Returned) => {
            let TurnPhase::Acting { reply, calls, done } = turn.phase else { return Err(illegal) };
            let done = done.saturating_add(1);
            let phase = if done >= calls { TurnPhase::Thinking } else { TurnPhase::Acting { reply, calls, done } };
            Ok(Some(Turn { phase, ..turn }))
        }
        // The host also speaks between turns, to show a request for consent.
        (None, TurnEvent::Said) => Ok(None),
        (Some(turn), TurnEvent::Said) => Ok(Some(Turn { has_spoken: true, ..turn })),
        (Some(_), TurnEvent::Ended) => Ok(None),
        _ => Err(illegal),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events() -> impl Strategy<Value = Vec<TurnEvent>> {
        let event = prop_oneof![
            (0_u64..9).prop_map(|trigger| TurnEvent::Began { trigger, kind: TriggerKind::Signal }),
            (0_u64..9, 0_u32..4).prop_map(|(reply, calls)| TurnEvent::Replied { reply, calls }),
            Just(TurnEvent::Returned),
            Just(TurnEvent::Said),
            Just(TurnEvent::Ended),
        ];
        proptest::collection::vec(event, 0..60)
    }

    proptest! {
        #[test]
        fn a_turn_asks_only_after_each_call_has_its_outcome(events in events()) {
            let (mut turn, mut open) = (None, 0_u32);
            for event in events {
                let Ok(next) = transition(turn, event) else { continue };
                match event {
                    TurnEvent::Began { .. } | TurnEvent::Ended => open = 0,
                    TurnEvent::Replied { calls, .. } => {
                        prop_assert_eq!(open, 0);
                        open = calls;
                    }
                    TurnEvent::Returned => open -= 1,
                    TurnEvent::Said => {}
                }
                if let Some(Turn { phase, .. }) = next {
                    match phase {
                        TurnPhase::Acting { calls, done, .. } => prop_assert_eq!(open, calls - done),
                        TurnPhase::Thinking | TurnPhase::Replied => prop_assert_eq!(open, 0),
                    }
                }
                turn = next;
            }
        }
    }

    #[test]
    fn a_turn_begins_once_and_ends_once() {
        let began = TurnEvent::Began { trigger: 1, kind: TriggerKind::OwnerMessage };
        let turn = transition(None, began).unwrap();
        assert!(transition(turn, began).is_err(), "one turn at a time");
        assert!(transition(None, TurnEvent::Ended).is_err());
        assert!(transition(turn, TurnEvent::Returned).is_err(), "no call was made");
        let replied = transition(turn, TurnEvent::Replied { reply: 2, calls: 0 }).unwrap();
        assert!(transition(replied, TurnEvent::Replied { reply: 3, calls: 1 }).is_err(), "it only has to be closed");
        assert_eq!(transition(replied, TurnEvent::Ended), Ok(None));
    }
}
