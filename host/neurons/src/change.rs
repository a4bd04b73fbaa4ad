//! The states of a neuron, and the changes between them.

use std::fmt;

use base::{ConsentRecord, ContentHash, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::draft::NeuronDraft;
use crate::fault::Fault;

/// The state of a neuron. Only one on trial or active ever ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NeuronStatus {
    /// Proposed by the agent; nothing of it has been executed.
    Proposed,
    /// It has passed its quarantine and waits for the owner.
    Quarantined,
    /// The owner has approved it, and it waits for a place.
    Approved,
    /// It ticks, and every bound is watched until the trial is over.
    Trial,
    /// It has passed its trial, and ticks.
    Active,
    /// It was approved once and ticks no more.
    Disabled,
    /// The quarantine or the owner has refused it.
    Rejected,
}

impl NeuronStatus {
    /// All states, in the order of a life.
    pub const ALL: [Self; 7] =
        [Self::Proposed, Self::Quarantined, Self::Approved, Self::Trial, Self::Active, Self::Disabled, Self::Rejected];

    /// The state after a change; `from` is `None` before the first.
    ///
    /// # Errors
    /// If the change is illegal in this state.
    pub fn transition(from: Option<Self>, change: &NeuronChange) -> Result<Self, IllegalChange> {
        use NeuronChange as Change;
        match (from, change) {
            // A new version begins at the beginning.
            (None | Some(Self::Rejected | Self::Disabled), Change::Proposed { .. }) => Ok(Self::Proposed),
            (Some(Self::Proposed), Change::QuarantinePassed { .. }) => Ok(Self::Quarantined),
            (Some(Self::Proposed), Change::QuarantineFailed { .. }) => Ok(Self::Rejected),
            (Some(Self::Quarantined), Change::Approved { .. }) => Ok(Self::Approved),
            (Some(Self::Proposed | Self::Quarantined), Change::Rejected { .. }) => Ok(Self::Rejected),
            (Some(Self::Approved), Change::TrialBegan { .. }) => Ok(Self::Trial),
            (Some(Self::Trial), Change::Promoted) => Ok(Self::Active),
            (Some(Self::Trial | Self::Active), Change::Disabled { .. }) => Ok(Self::Disabled),
            (Some(Self::Approved | Self::Trial | Self::Active), Change::SwitchedOff { .. }) => Ok(Self::Disabled),
            // It is tried again, as if just approved.
            (Some(Self::Disabled), Change::SwitchedOn { .. }) => Ok(Self::Approved),
            _ => Err(IllegalChange { from, change: change.name() }),
        }
    }

    /// Whether signals make it tick.
    #[must_use]
    pub fn ticks(self) -> bool {
        matches!(self, Self::Trial | Self::Active)
    }

    /// As JSON has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Quarantined => "quarantined",
            Self::Approved => "approved",
            Self::Trial => "trial",
            Self::Active => "active",
            Self::Disabled => "disabled",
            Self::Rejected => "rejected",
        }
    }
}

impl fmt::Display for NeuronStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A change that is illegal in the state of the neuron.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a neuron that is {} cannot be {change}", from.map_or("not there", NeuronStatus::as_str))]
pub struct IllegalChange {
    /// The state of the neuron.
    pub from: Option<NeuronStatus>,
    /// The name of the change.
    pub change: &'static str,
}

/// A stored change of a neuron.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NeuronEvent {
    /// When it became durable.
    pub at: Timestamp,
    /// The change, without its envelope.
    #[serde(flatten)]
    pub change: NeuronChange,
}

/// A change of a neuron's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum NeuronChange {
    /// The agent proposed it, or another version of it.
    Proposed {
        /// The proposal in full.
        draft: Box<NeuronDraft>,
    },
    /// Every scenario of the quarantine ended as declared.
    QuarantinePassed {
        /// Number of scenarios, each executed twice.
        scenarios: u64,
        /// The most energy of one execution, in millionths of a full level.
        most_energy_micros: u64,
    },
    /// The quarantine refused it.
    QuarantineFailed {
        /// The reason with its code.
        fault: Fault,
    },
    /// The owner approved exactly this version.
    Approved {
        /// Hash of the version that was shown.
        hash: ContentHash,
        /// The owner's consent.
        consent: ConsentRecord,
    },
    /// The owner refused it.
    Rejected {
        /// The owner's decision.
        consent: ConsentRecord,
    },
    /// It got a place.
    TrialBegan {
        /// The last signal before the trial: only later ones count.
        after_signal: u64,
    },
    /// Its trial is over.
    Promoted,
    /// The host stopped it.
    Disabled {
        /// The reason with its code.
        fault: Fault,
    },
    /// The owner stopped it.
    SwitchedOff {
        /// The owner's decision.
        consent: ConsentRecord,
    },
    /// The owner lets it be tried again.
    SwitchedOn {
        /// The owner's consent.
        consent: ConsentRecord,
    },
}

impl NeuronChange {
    /// The change in a word.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Proposed { .. } => "proposed",
            Self::QuarantinePassed { .. } => "passed",
            Self::QuarantineFailed { .. } => "refused",
            Self::Approved { .. } => "approved",
            Self::Rejected { .. } => "rejected",
            Self::TrialBegan { .. } => "tried",
            Self::Promoted => "promoted",
            Self::Disabled { .. } => "disabled",
            Self::SwitchedOff { .. } => "switched off",
            Self::SwitchedOn { .. } => "switched on",
        }
    }
}
