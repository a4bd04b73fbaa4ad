//! A proposal from work that succeeded: the named code, the completed runs and the turns of conversations in which the same code succeeded,
//! and their samples as scenarios. A run or a turn counts once, however often it executed the code.

use std::collections::BTreeSet;

use base::{AgentName, ContentHash, Refusal, RefusalCode, RunId};
use cognition::{Consolidation, ExecutedProgram};
use motor::{ListFilter, Motor, RunRecord, RunStatus, ToolCallTrace};
use neurons::{
    InputKind, MAX_SCENARIOS, Neuron, NeuronDraft, NeuronInput, NeuronName, NeuronOrigin, NeuronProgram, OutputKind,
    Scenario, emitted_by, split_sample,
};
use serde_json::Value;
use store::blocking;

use super::Neurons;
use super::propose::{ENERGY_MICROS, submit};

/// The latest completed runs that are searched for the same code.
const MAX_RUNS: usize = 200;
/// Recorded samples that become scenarios; the others are the proposal's.
const MAX_RECORDED: usize = 8;

/// Proposes a neuron and puts it through its quarantine.
///
/// # Errors
/// If the named run is not a completed one of the agent with such code, the code has not succeeded, or the proposal is refused.
pub(crate) async fn consolidate(neurons: &Neurons, request: Consolidation) -> Result<Neuron, Refusal> {
    let motor = neurons.0.motor.clone();
    let draft = blocking(move || draft(&motor, request)).await?;
    submit(neurons, draft, None).await
}

fn draft(motor: &Motor, request: Consolidation) -> Result<NeuronDraft, Refusal> {
    let Consolidation { agent, run, code, programs, name, purpose, inputs, outputs, energy_micros, scenarios, sources } =
        request;
    let wrong = |error: &dyn std::fmt::Display| Refusal::new(RefusalCode::InvalidRequest, error.to_string());
    let name = NeuronName::parse(&name).map_err(|error| wrong(&error))?;
    let parse = |kind: &String| OutputKind::parse(kind).map_err(|error| wrong(&error));
    let outputs = outputs.iter().map(parse).collect::<Result<BTreeSet<_>, _>>()?;
    let inputs = inputs.into_iter().map(|kind| {
        let unknown = |error| {
            wrong(&format!(
                "a neuron reads `run.completed`, `run.failed`, `run.cancelled`, or kinds of neurons: {error}"
            ))
        };
        InputKind::parse(&kind).map_err(unknown)
    });
    let inputs = inputs.collect::<Result<BTreeSet<_>, _>>()?;
    let proposed = scenarios.into_iter().map(|scenario| {
        let unreadable = |error| wrong(&format!("a scenario is not `{{signal: {{kind, data}}, emits: […]}}`: {error}"));
        serde_json::from_value::<Scenario>(scenario).map_err(unreadable)
    });
    let proposed = proposed.collect::<Result<Vec<_>, _>>()?;
    let source = match (&run, code.filter(|code| !code.trim().is_empty())) {
        (Some(run), None) => named_code(motor, &agent, run)?,
        (None, Some(code)) => split_sample(&code)?.1,
        _ => return Err(wrong(&"give either `runId`, a completed run, or `code`, a program of `core_execute`")),
    };
    let mut recorded = Recorded::of(motor, &agent, &source, &outputs)?;
    recorded.add_turns(programs, &source, &outputs);
    if recorded.successes == 0 {
        // Without one it would pass for a file of the owner, which needs none.
        let reason = "this code has succeeded neither in a completed run nor by `core_execute`";
        return Err(Refusal::new(RefusalCode::IllegalState, reason)
            .with_remedy("give exactly the code that was executed, with its first line"));
    }
    let mut all = recorded.scenarios;
    for scenario in proposed {
        if !all.contains(&scenario) {
            all.push(scenario);
        }
    }
    if all.len() > MAX_SCENARIOS {
        return Err(wrong(&format!("a quarantine has at most {MAX_SCENARIOS} scenarios")));
    }
    let mut tainted: BTreeSet<String> = recorded.sources;
    tainted.extend(sources);
    let sources = tainted.into_iter().collect();
    Ok(NeuronDraft {
        agent,
        name,
        purpose,
        program: NeuronProgram::Source(source),
        inputs,
        outputs,
        energy_micros: energy_micros.unwrap_or(ENERGY_MICROS),
        scenarios: all,
        origin: NeuronOrigin { run: run.or(recorded.latest), successes: recorded.successes, sources },
    })
}

/// The hash of code without its sample, by which programs of conversations are found again.
pub(crate) fn code_hash(source: &str) -> ContentHash {
    ContentHash::of(source.as_bytes())
}

/// The last code of a run that can become a neuron, without its sample.
fn named_code(motor: &Motor, agent: &AgentName, run: &RunId) -> Result<String, Refusal> {
    let record = motor.record(run).ok().filter(|record| record.agent == *agent);
    let record = record.ok_or_else(|| Refusal::new(RefusalCode::NotFound, format!("there is no run `{run}`")))?;
    if record.status != RunStatus::Completed {
        let reason = format!("`{run}` is {}: only work that succeeded becomes a neuron", record.status);
        return Err(Refusal::new(RefusalCode::IllegalState, reason));
    }
    let mut last =
        Err(Refusal::new(RefusalCode::IllegalState, format!("`{run}` executed no JavaScript that succeeded")));
    for code in programs(motor, run)? {
        let split = split_sample(&code.source).map(|(_, source)| source);
        if split.is_ok() || last.is_err() {
            last = split;
        }
    }
    last
}

/// A program that succeeded in a run.
struct SucceededCode {
    source: String,
    output: String,
}

/// The JavaScript that succeeded in a run, in order.
fn programs(motor: &Motor, run: &RunId) -> Result<Vec<SucceededCode>, Refusal> {
    let trace = motor.status(run)?;
    let code = |call: ToolCallTrace| {
        let is_script = call.args.get("language").and_then(Value::as_str).is_none_or(|name| name == "javascript");
        let result = call.result.filter(|result| result.ok && is_script && call.tool == "code")?;
        let source = call.args.get("code").and_then(Value::as_str)?.to_owned();
        Some(SucceededCode { source, output: result.output })
    };
    Ok(trace.steps.into_iter().flat_map(|step| step.tool_calls).filter_map(code).collect())
}

/// The completed runs and the turns of conversations in which the same code succeeded.
#[derive(Default)]
struct Recorded {
    successes: u64,
    /// The latest of the runs.
    latest: Option<RunId>,
    scenarios: Vec<Scenario>,
    sources: BTreeSet<String>,
}

impl Recorded {
    fn of(motor: &Motor, agent: &AgentName, source: &str, outputs: &BTreeSet<OutputKind>) -> Result<Self, Refusal> {
        let filter = ListFilter {
            status: Some(RunStatus::Completed),
            agent: Some(agent.clone()),
            limit: MAX_RUNS,
            ..ListFilter::default()
        };
        let mut recorded = Self::default();
        for RunRecord { id, web_sources, .. } in motor.list(filter)? {
            let mut is_same = false;
            for SucceededCode { source: code, output } in programs(motor, &id)? {
                let Ok((sample, same)) = split_sample(&code) else { continue };
                if same != source {
                    continue;
                }
                is_same = true;
                recorded.add_sample(sample, &output, outputs);
            }
            if is_same {
                recorded.successes = recorded.successes.saturating_add(1);
                recorded.latest.get_or_insert(id);
                recorded.sources.extend(web_sources);
            }
        }
        Ok(recorded)
    }

    fn add_turns(&mut self, programs: Vec<ExecutedProgram>, source: &str, outputs: &BTreeSet<OutputKind>) {
        let (code, mut turns) = (code_hash(source), BTreeSet::new());
        for ExecutedProgram { turn, sources, program, .. } in programs {
            let Ok(sample) = serde_json::from_value(program.sample) else { continue };
            if program.code != code {
                continue;
            }
            self.add_sample(sample, &program.output, outputs);
            self.sources.extend(sources);
            turns.insert(turn);
        }
        self.successes = self.successes.saturating_add(u64::try_from(turns.len()).unwrap_or(u64::MAX));
    }

    fn add_sample(&mut self, sample: NeuronInput, output: &str, outputs: &BTreeSet<OutputKind>) {
        // The result comes first, and console output after it. A result with other signals than declared fails the quarantine,
        // where the same signal gives it again.
        let result = serde_json::Deserializer::from_str(output).into_iter::<Value>().next();
        let result = result.and_then(Result::ok).unwrap_or_default().to_string();
        let emits = emitted_by(&result, outputs).unwrap_or_default();
        let emits = emits.into_iter().map(|signal| signal.kind).collect();
        let is_known = self.scenarios.iter().any(|scenario| scenario.signal == sample);
        if !is_known && self.scenarios.len() < MAX_RECORDED {
            self.scenarios.push(Scenario { signal: sample, emits });
        }
    }
}
