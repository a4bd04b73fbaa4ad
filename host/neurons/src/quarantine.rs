//! The quarantine: simulated signals in, exactly the declared signals out, twice the same, within the energy of a tick.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::{Refusal, Timestamp};

use crate::change::NeuronChange;
use crate::config::NeuronsConfig;
use crate::draft::{NeuronDraft, NeuronProgram};
use crate::fault::{Fault, FaultCode};
use crate::names::OutputKind;
use crate::tick::{NeuronHost, Tick, run};

/// The seeds and clocks of the two executions of a scenario: a neuron whose result depends on them is refused.
const EXECUTIONS: [(u64, Timestamp); 2] = [
    (1, Timestamp::from_millis(1_000_000_000_000)),
    (0x9e37_79b9_7f4a_7c15, Timestamp::from_millis(2_000_000_061_007)),
];

/// Executes every scenario, and returns the change that follows. `component` are the bytes that are stored beside the neuron.
///
/// # Errors
/// If the host cannot execute it; that says nothing about the neuron.
pub(crate) async fn examine(
    draft: &NeuronDraft,
    component: Option<Arc<[u8]>>,
    host: &dyn NeuronHost,
    config: &NeuronsConfig,
) -> Result<NeuronChange, Refusal> {
    match scenarios(draft, component, host, config).await? {
        Ok((scenarios, most_energy_micros)) => Ok(NeuronChange::QuarantinePassed { scenarios, most_energy_micros }),
        Err(fault) => Ok(NeuronChange::QuarantineFailed { fault }),
    }
}

type Examined = Result<(u64, u64), Fault>;

async fn scenarios(
    draft: &NeuronDraft,
    component: Option<Arc<[u8]>>,
    host: &dyn NeuronHost,
    config: &NeuronsConfig,
) -> Result<Examined, Refusal> {
    let mismatch = |reason: String| Ok(Err(Fault::new(FaultCode::OutputMismatch, reason)));
    let different: BTreeSet<String> =
        draft.scenarios.iter().filter_map(|scenario| serde_json::to_string(&scenario.signal).ok()).collect();
    let count = u64::try_from(different.len()).unwrap_or(u64::MAX);
    if count < config.min_scenarios {
        let reason = format!("it has {count} different scenarios, and needs {}", config.min_scenarios);
        return Ok(Err(Fault::new(FaultCode::TooFewScenarios, reason)));
    }
    if draft.scenarios.iter().map(|scenario| scenario.signal.kind.clone()).collect::<BTreeSet<_>>() != draft.inputs {
        return mismatch("its scenarios do not have exactly the kinds of signals that it reads".to_owned());
    }
    // Once, and never the text of a signal: a neuron must not fail because a signal quotes code.
    if let NeuronProgram::Source(source) = &draft.program
        && let Some(construct) = host.blocked(source)
    {
        let reason = format!("its code contains the disallowed pattern `{construct}`");
        return Ok(Err(Fault::new(FaultCode::Blocked, reason)));
    }
    let (mut seen, mut most) = (BTreeSet::new(), 0);
    for (number, scenario) in (1_u64..).zip(&draft.scenarios) {
        let mut results = Vec::new();
        for (seed, now) in EXECUTIONS {
            let tick = Tick { signal: &scenario.signal, seed, now };
            let (ended, spent) = run(host, draft, component.clone(), tick).await?;
            most = most.max(spent);
            match ended {
                Ok(signals) => results.push(signals),
                Err(Fault { code, reason }) => {
                    return Ok(Err(Fault::new(code, format!("scenario {number}: {reason}"))));
                }
            }
        }
        if results.windows(2).any(|pair| pair.first() != pair.last()) {
            let reason = format!("scenario {number} gave two results for the same signal");
            return Ok(Err(Fault::new(FaultCode::NonDeterministic, reason)));
        }
        let kinds: BTreeSet<OutputKind> = results.into_iter().flatten().map(|signal| signal.kind).collect();
        if kinds != scenario.emits {
            return mismatch(format!(
                "scenario {number} emitted {}, and {} was expected",
                listed(&kinds),
                listed(&scenario.emits)
            ));
        }
        seen.extend(kinds);
    }
    if seen != draft.outputs {
        return mismatch(format!("it declares {}, and emitted {}", listed(&draft.outputs), listed(&seen)));
    }
    Ok(Ok((count, most)))
}

fn listed(kinds: &BTreeSet<OutputKind>) -> String {
    let words: Vec<_> = kinds.iter().map(OutputKind::as_str).collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}
