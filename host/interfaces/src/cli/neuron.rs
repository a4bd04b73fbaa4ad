//! `motor neuron`: programs that an agent learned or the owner wrote, which react to signals without a model (SPEC NEU-1).

mod propose;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use agent::{ApproveNeuron, NamedNeuron, NeuronDetail, NeuronList, SwitchNeurons};
use base::text::Foreign;
use base::{Refusal, RefusalCode};
use clap::{Args, Subcommand};
use neurons::{InputKind, Neuron, NeuronChange, NeuronName, NeuronProgram, NeuronSignal, NeuronStatus, OutputKind};

use super::Done;
use super::consent::{confirm, unasked};
use super::context::Context;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::table::TextTable;
use crate::output::text;
use crate::session::Session;
use crate::words::card::{Card, Tone};

/// Characters of a text of a neuron in one line.
const MAX_SHOWN: usize = 300;
/// Lines of code that are shown.
const MAX_LINES: usize = 1_000;

/// Subcommands of `motor neuron`.
#[derive(Debug, Subcommand)]
pub(super) enum NeuronCommand {
    /// List the neurons of an agent with their states
    List,
    /// Show a neuron with its program, its signals and its history
    Show(NamedArgs),
    /// Propose a neuron of your own, code or a component, and test it in its quarantine
    Propose(propose::ProposeArgs),
    /// List the latest signals that neurons emitted, the newest first
    Signals(SignalsArgs),
    /// Show the program of a quarantined neuron, and let it be tried
    Approve(NamedArgs),
    /// Refuse a neuron that is not approved
    Reject(NamedArgs),
    /// Let a disabled neuron be tried again; without a name, lift the switch for all
    On(SwitchArgs),
    /// Stop a neuron; without a name, stop all of the home at once
    Off(SwitchArgs),
    /// Delete a neuron with its history and its signals
    Forget(NamedArgs),
}

/// Argument of the commands about one neuron.
#[derive(Debug, Args)]
pub(super) struct NamedArgs {
    /// Name of the neuron
    name: NeuronName,
}

/// Argument of the switches.
#[derive(Debug, Args)]
pub(super) struct SwitchArgs {
    /// Name of the neuron. Default: all
    name: Option<NeuronName>,
}

/// Arguments of `motor neuron signals`.
#[derive(Debug, Args)]
pub(super) struct SignalsArgs {
    /// Only those of this neuron
    name: Option<NeuronName>,
    /// Number of signals to list, at most 1000
    #[arg(long, default_value_t = 100, value_name = "N")]
    limit: usize,
}

pub(super) async fn run(command: NeuronCommand, context: &Context) -> Done {
    context
        .with_host(async |session| {
            let agent = context.agent();
            let columns = context.output.columns;
            match command {
                NeuronCommand::List => {
                    let found: NeuronList = session.ask(&Call::get(format!("/v1/neurons?agent={agent}"))).await?;
                    context.answer(&found, || list(&found, columns))?;
                }
                NeuronCommand::Show(NamedArgs { name }) => {
                    let found = read(session, context, &name).await?;
                    context.answer(&found, || show(&found))?;
                }
                NeuronCommand::Signals(SignalsArgs { name, limit }) => {
                    let of = name.map(|name| format!("&neuron={name}")).unwrap_or_default();
                    let path = format!("/v1/neuron-signals?agent={agent}&limit={limit}{of}");
                    let found: Vec<NeuronSignal> = session.ask(&Call::get(path)).await?;
                    context.answer(&found, || signals(&found, columns))?;
                }
                NeuronCommand::Propose(args) => return propose::run(args, session, context).await,
                NeuronCommand::Approve(NamedArgs { name }) => {
                    let NeuronDetail { neuron, .. } = read(session, context, &name).await?;
                    if neuron.status != NeuronStatus::Quarantined {
                        let reason =
                            format!("the neuron `{name}` is {}, and does not wait for approval", neuron.status);
                        return Err(Refusal::new(RefusalCode::IllegalState, reason)
                            .with_remedy(format!("`motor neuron show {name}` tells its history"))
                            .into());
                    }
                    let word = confirm(&card(format!("let the neuron `{name}` be tried?"), &neuron), context).await?;
                    let request = ApproveNeuron { agent, name: name.clone(), hash: neuron.hash };
                    let call = Call::post("/v1/neuron-approvals", &request)?.with(word);
                    let approved: Neuron = session.ask(&call).await?;
                    context.answer(&approved, || match approved.status {
                        NeuronStatus::Trial => format!("{name} is approved, and its trial has begun"),
                        _ => format!("{name} is approved, and waits for a place"),
                    })?;
                }
                NeuronCommand::Reject(NamedArgs { name }) => {
                    let request = NamedNeuron { agent, name: name.clone() };
                    let call = Call::post("/v1/neuron-rejections", &request)?.with(unasked(context).await?);
                    let rejected: Neuron = session.ask(&call).await?;
                    context.answer(&rejected, || format!("{name} is rejected"))?;
                }
                NeuronCommand::On(SwitchArgs { name }) => {
                    let word = match &name {
                        Some(name) => {
                            let NeuronDetail { neuron, .. } = read(session, context, name).await?;
                            confirm(&card(format!("let the neuron `{name}` be tried again?"), &neuron), context).await?
                        }
                        None => {
                            let card = Card::new("let approved neurons tick again?");
                            confirm(&card.with("tick", "on the ends of runs, without a model"), context).await?
                        }
                    };
                    let request = SwitchNeurons { agent, name, on: true };
                    let found: NeuronList = session.ask(&Call::post("/v1/neuron-switch", &request)?.with(word)).await?;
                    context.answer(&found, || list(&found, columns))?;
                }
                NeuronCommand::Off(SwitchArgs { name }) => {
                    let request = SwitchNeurons { agent, name, on: false };
                    let call = Call::post("/v1/neuron-switch", &request)?.with(unasked(context).await?);
                    let found: NeuronList = session.ask(&call).await?;
                    context.answer(&found, || list(&found, columns))?;
                }
                NeuronCommand::Forget(NamedArgs { name }) => {
                    let NeuronDetail { neuron, .. } = read(session, context, &name).await?;
                    let word = confirm(&card(format!("forget the neuron `{name}`?"), &neuron), context).await?;
                    let path = format!("/v1/neurons/{name}?agent={agent}");
                    let left: NeuronList = session.ask(&Call::delete(path).with(word)).await?;
                    context.answer(&left, || format!("forgotten: {name}"))?;
                }
            }
            Ok(CommandExit::Ok)
        })
        .await
}

async fn read(session: &mut Session, context: &Context, name: &NeuronName) -> Result<NeuronDetail, Refusal> {
    session.ask(&Call::get(format!("/v1/neurons/{name}?agent={}", context.agent()))).await
}

/// The kinds that a neuron reads, and those that it emits, for people.
fn kinds(inputs: &BTreeSet<InputKind>, outputs: &BTreeSet<OutputKind>) -> (String, String) {
    let inputs: Vec<_> = inputs.iter().map(InputKind::as_str).collect();
    let outputs: Vec<_> = outputs.iter().map(OutputKind::as_str).collect();
    (inputs.join(", "), outputs.join(", "))
}

/// The card of a neuron: everything that its approval covers, with all of its code, or the hash of its component.
fn card(title: String, neuron: &Neuron) -> Card {
    let draft = &neuron.draft;
    let (reads, emits) = kinds(&draft.inputs, &draft.outputs);
    let from = match &draft.origin.run {
        Some(run) => format!("{run}; the same code succeeded in {} runs or turns", draft.origin.successes),
        None if !draft.origin.is_file() => {
            format!("conversations; the same code succeeded in {} turns", draft.origin.successes)
        }
        None => "a file that the owner proposed; no run has tried it".to_owned(),
    };
    let mut card = Card::new(title)
        .with("purpose", &draft.purpose)
        .with("reads", reads)
        .with("emits", emits)
        .with("energy", format!("at most {} millionths of a full level a tick", text::thousands(draft.energy_micros)))
        .with("reaches", "nothing: no files, no network, no model")
        .with("from", from);
    if !draft.origin.sources.is_empty() {
        let sources = draft.origin.sources.join(", ");
        card = card.toned(Tone::Warning, "tainted by", format!("its origin has read untrusted content of {sources}"));
    }
    let card = card.with("hash", neuron.hash.hex());
    match &draft.program {
        NeuronProgram::Source(source) => card.with("code", source),
        NeuronProgram::Component(component) => card
            .with("component", component.hash.hex())
            .with("size", format!("{} bytes", text::thousands(component.size_bytes)))
            .with("imports", "none"),
    }
}

fn list(found: &NeuronList, columns: usize) -> String {
    let NeuronList { switches, neurons } = found;
    let state = match (switches.enabled, switches.switched_off) {
        (false, _) => "neurons are off by `neurons.enabled`".to_owned(),
        (true, true) => "all neurons are off; `motor neuron on` lifts it".to_owned(),
        (true, false) => format!("{} of {} places are taken", switches.running, switches.places),
    };
    if neurons.is_empty() {
        return format!("{state}\nno neurons");
    }
    let mut table = TextTable::new(&["NAME", "STATUS", "HASH", "TICKS", "FAILED", "EMITTED", "PURPOSE"]);
    for Neuron { draft, status, hash, meter, .. } in neurons {
        let count = |number: u64| text::thousands(number);
        table.row([
            draft.name.to_string(),
            status.to_string(),
            hash.short(),
            count(meter.ticks),
            count(meter.failed),
            count(meter.emitted),
            Foreign(&draft.purpose).visible(MAX_SHOWN),
        ]);
    }
    format!("{state}\n{}", table.render(columns))
}

fn show(found: &NeuronDetail) -> String {
    let NeuronDetail { neuron: Neuron { draft, status, hash, meter, fault, .. }, events } = found;
    let (reads, emits) = kinds(&draft.inputs, &draft.outputs);
    let mut shown = format!(
        "{}: {status}\npurpose: {}\nreads: {reads}\nemits: {emits}\nhash: {hash}\nticks: {}, {} failed, {} signals, {} millionths of energy",
        draft.name,
        Foreign(&draft.purpose).visible(MAX_SHOWN),
        meter.ticks,
        meter.failed,
        meter.emitted,
        meter.energy_micros,
    );
    let mut line = |words: &str| {
        // Writing to a string cannot fail.
        write!(shown, "\n{words}").ok();
    };
    if let Some(fault) = fault {
        line(&format!("stopped ({}): {}", fault.code.as_str(), Foreign(&fault.reason).visible(MAX_SHOWN)));
    }
    for event in events {
        let why = match &event.change {
            NeuronChange::QuarantineFailed { fault } | NeuronChange::Disabled { fault } => {
                format!(" ({})", fault.code.as_str())
            }
            _ => String::new(),
        };
        line(&format!("{} {}{why}", text::seconds(event.at), event.change.name()));
    }
    match &draft.program {
        NeuronProgram::Source(source) => {
            line("code:");
            for code in source.lines().take(MAX_LINES) {
                line(&format!("  {}", Foreign(code).visible(usize::MAX)));
            }
        }
        NeuronProgram::Component(component) => {
            let size = text::thousands(component.size_bytes);
            line(&format!("component: {}, {size} bytes, imports nothing", component.hash));
        }
    }
    shown
}

fn signals(found: &[NeuronSignal], columns: usize) -> String {
    if found.is_empty() {
        return "no signals of neurons".to_owned();
    }
    let mut table = TextTable::new(&["ID", "AT", "SOURCE", "KIND", "DATA"]);
    for NeuronSignal { id, at, source, kind, data, .. } in found {
        let data = Foreign(&data.to_string()).visible(MAX_SHOWN);
        table.row([id.to_string(), text::seconds(*at), source.clone(), kind.to_string(), data]);
    }
    table.render(columns)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_card_has_all_of_the_code_and_texts_of_a_neuron_stay_behind_their_labels() {
        let neuron: Neuron = serde_json::from_value(json!({
            "agent": "main", "name": "bitcoin", "purpose": "notes\u{1b}[2J the price", "source": "const a = 1;\nreturn [];",
            "inputs": ["run.completed"], "outputs": ["bitcoin.price"], "energyMicros": 1_000, "scenarios": [],
            "origin": { "run": "run_1", "successes": 8, "sources": ["evil.example"] },
            "hash": base::ContentHash::of(b"a"), "status": "quarantined", "events": 2, "changedAt": 0,
        }))
        .unwrap();
        let card = card("let it be tried?".to_owned(), &neuron);
        let rows = card.render(80, crate::output::Palette::new(false)).join("\n");
        for shown in ["const a = 1;", "return [];", "emits      │ bitcoin.price", "evil.example", "8 runs"] {
            assert!(rows.contains(shown), "{shown}: {rows}");
        }
        assert!(!rows.contains('\u{1b}'), "{rows}");
        let detail = NeuronDetail { neuron, events: Vec::new() };
        assert!(!show(&detail).contains('\u{1b}'), "{}", show(&detail));
        let mut neuron = detail.neuron;
        neuron.draft.origin.run = None;
        let card = super::card(String::new(), &neuron);
        assert!(card.fields().any(|(name, text, _)| name == "from" && text.ends_with("succeeded in 8 turns")));
    }

    #[test]
    fn the_card_of_a_component_has_its_hash_its_size_and_no_imports() {
        let component = neurons::NeuronComponentRef { size_bytes: 12_345, ..neurons::NeuronComponentRef::of(b"a") };
        let neuron: Neuron = serde_json::from_value(json!({
            "agent": "main", "name": "bitcoin", "purpose": "notes the price", "component": component,
            "inputs": ["run.completed"], "outputs": ["bitcoin.price"], "energyMicros": 1_000, "scenarios": [],
            "origin": { "successes": 0 },
            "hash": base::ContentHash::of(b"version"), "status": "quarantined", "events": 2, "changedAt": 0,
        }))
        .unwrap();
        let card = card("let it be tried?".to_owned(), &neuron);
        let hash = component.hash.hex();
        for (label, expected) in [
            ("component", hash.as_str()),
            ("size", "12,345 bytes"),
            ("imports", "none"),
            ("from", "a file that the owner proposed; no run has tried it"),
        ] {
            assert!(card.fields().any(|(name, text, _)| (name, text) == (label, expected)), "{label}");
        }
        assert!(card.fields().all(|(label, ..)| label != "code"));
        let shown = show(&NeuronDetail { neuron, events: Vec::new() });
        assert!(shown.ends_with(&format!("component: sha256:{hash}, 12,345 bytes, imports nothing")), "{shown}");
    }
}
