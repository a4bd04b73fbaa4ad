//! A neuron as the fold of its changes.

use std::time::Duration;

use base::{AgentName, ConsentRecord, ContentHash, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change::{IllegalChange, NeuronChange, NeuronEvent, NeuronStatus};
use crate::config::NeuronsConfig;
use crate::draft::NeuronDraft;
use crate::fault::{Fault, FaultCode};
use crate::names::InputKind;

/// The time over which errors, overruns and signals are counted.
const HOUR: Duration = Duration::from_secs(3_600);

/// A neuron with its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Neuron {
    /// The version that was proposed last.
    #[serde(flatten)]
    pub draft: NeuronDraft,
    /// Hash of that version.
    pub hash: ContentHash,
    /// Its state, which decides whether it ticks.
    pub status: NeuronStatus,
    /// Number of its changes, of all versions.
    pub events: u64,
    /// When the state last changed.
    pub changed_at: Timestamp,
    /// The owner's consent to this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ConsentRecord>,
    /// Its trial, the last one if there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
    /// Why it was refused or stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// Counts of its ticks.
    #[serde(default)]
    pub meter: Meter,
}

/// The trial of a neuron.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    /// When the neuron got its place.
    pub began_at: Timestamp,
    /// The last signal before it.
    pub after_signal: u64,
}

/// Counts of a neuron's ticks since its trial began, and in the present hour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Meter {
    /// Signals that it has processed.
    pub ticks: u64,
    /// Signals that it has emitted.
    pub emitted: u64,
    /// Ticks that failed, overruns included.
    pub failed: u64,
    /// Energy that it has spent, in millionths of a full level.
    pub energy_micros: u64,
    /// When the present hour began.
    pub hour_began_ms: u64,
    /// Errors of the hour.
    pub hour_errors: u64,
    /// Overruns of the hour.
    pub hour_overruns: u64,
    /// Signals of the hour.
    pub hour_emitted: u64,
}

impl Meter {
    /// Counts a tick, and judges the hour by the bounds of `config`.
    ///
    /// # Errors
    /// With the bound that is exceeded: the neuron has to stop, and nothing of this tick is emitted.
    pub(crate) fn count(
        &mut self,
        now: Timestamp,
        ended: &Result<u64, Fault>,
        config: &NeuronsConfig,
    ) -> Result<(), Fault> {
        let began = Timestamp::from_millis(self.hour_began_ms);
        // A clock that was set back begins a new hour too.
        if now.since(began) >= HOUR || now < began {
            *self = Self { hour_began_ms: now.as_millis(), hour_errors: 0, hour_overruns: 0, hour_emitted: 0, ..*self };
        }
        self.ticks = self.ticks.saturating_add(1);
        match ended {
            Ok(emitted) => {
                self.hour_emitted = self.hour_emitted.saturating_add(*emitted);
                if self.hour_emitted > config.max_signals_per_hour {
                    let most = config.max_signals_per_hour;
                    return Err(Fault::new(
                        FaultCode::SignalSpam,
                        format!("it emitted more than {most} signals in an hour"),
                    ));
                }
                self.emitted = self.emitted.saturating_add(*emitted);
                Ok(())
            }
            Err(fault) => {
                self.failed = self.failed.saturating_add(1);
                let (count, most) = match fault.code {
                    // The owner was shown other signals, or another component.
                    FaultCode::UndeclaredSignal | FaultCode::SignalSpam | FaultCode::InvalidComponent => {
                        return Err(fault.clone());
                    }
                    FaultCode::OverBudget => (&mut self.hour_overruns, config.max_overruns_per_hour),
                    _ => (&mut self.hour_errors, config.max_errors_per_hour),
                };
                *count = count.saturating_add(1);
                if *count > most { Err(fault.clone()) } else { Ok(()) }
            }
        }
    }
}

impl Neuron {
    /// The neuron after an event.
    ///
    /// # Errors
    /// If the change is illegal.
    pub fn after(before: Option<Self>, event: &NeuronEvent) -> Result<Self, IllegalChange> {
        let status = NeuronStatus::transition(before.as_ref().map(|neuron| neuron.status), &event.change)?;
        let events = before.as_ref().map_or(0, |neuron| neuron.events).saturating_add(1);
        let mut neuron = match (&event.change, before) {
            (NeuronChange::Proposed { draft }, _) => Self {
                hash: draft.hash(),
                draft: (**draft).clone(),
                status,
                events,
                changed_at: event.at,
                approval: None,
                trial: None,
                fault: None,
                meter: Meter::default(),
            },
            (_, Some(before)) => Self { status, events, changed_at: event.at, ..before },
            // The transition admits only a proposal of a neuron that is not there.
            (change, None) => return Err(IllegalChange { from: None, change: change.name() }),
        };
        match &event.change {
            NeuronChange::QuarantineFailed { fault } | NeuronChange::Disabled { fault } => {
                neuron.fault = Some(fault.clone());
            }
            NeuronChange::Approved { consent, .. } | NeuronChange::SwitchedOn { consent } => {
                neuron.approval = Some(consent.clone());
                neuron.fault = None;
            }
            NeuronChange::TrialBegan { after_signal } => {
                neuron.trial = Some(Trial { began_at: event.at, after_signal: *after_signal });
                neuron.meter = Meter::default();
            }
            _ => {}
        }
        Ok(neuron)
    }

    /// Whether it ticks at a signal of this agent, kind and number. A version other than the hashed one never ticks.
    pub(crate) fn hears(&self, agent: &AgentName, kind: &InputKind, signal: u64) -> bool {
        self.status.ticks()
            && self.draft.agent == *agent
            && self.draft.inputs.contains(kind)
            && self.trial.is_some_and(|trial| signal > trial.after_signal)
            && self.draft.hash() == self.hash
    }

    /// Whether its trial is over.
    pub(crate) fn has_passed(&self, now: Timestamp, config: &NeuronsConfig) -> bool {
        let is_long = self.trial.is_some_and(|trial| now.since(trial.began_at) >= config.trial());
        self.status == NeuronStatus::Trial && is_long && self.meter.ticks >= config.trial_events
    }
}
