//! `motor neuron propose`: a neuron from a file of the owner, put through its quarantine at once.

use std::path::{Path, PathBuf};

use agent::{ProposeNeuron, ProposedProgram};
use base::text::Foreign;
use base::{ContentHash, Refusal, RefusalCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use neurons::{InputKind, MAX_COMPONENT_BYTES, Neuron, NeuronName, NeuronStatus, OutputKind, Scenario};

use super::super::consent::confirm;
use super::super::context::{Context, usage};
use super::super::{Done, input};
use super::{MAX_SHOWN, kinds};
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::text;
use crate::session::Session;
use crate::words::card::Card;

/// Arguments of `motor neuron propose`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ProposeArgs {
    /// Name of the neuron
    name: NeuronName,
    /// Its program: code in a file that ends in `.js`, or a component of the world `neuron` in one that ends in `.wasm`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Purpose of the neuron, in one line
    #[arg(long, value_name = "TEXT")]
    purpose: String,
    /// Kinds of signals that it reads, separated by commas
    #[arg(long, value_name = "KIND,…", required = true, value_delimiter = ',', value_parser = InputKind::parse)]
    inputs: Vec<InputKind>,
    /// Kinds of signals that it emits, separated by commas
    #[arg(long, value_name = "KIND,…", required = true, value_delimiter = ',', value_parser = OutputKind::parse)]
    outputs: Vec<OutputKind>,
    /// A JSON file with at least three scenarios: `[{"signal": {"kind": …, "data": …}, "emits": [KIND, …]}, …]`
    #[arg(long, value_name = "FILE")]
    scenarios: PathBuf,
    /// Energy of one tick at most, in millionths of a full level. Default: 1000
    #[arg(long, value_name = "MICROS")]
    energy: Option<u64>,
}

pub(super) async fn run(args: ProposeArgs, session: &mut Session, context: &Context) -> Done {
    let ProposeArgs { name, file, purpose, inputs, outputs, scenarios, energy } = args;
    let (program, size, hash) = program(&file)?;
    let request = ProposeNeuron {
        agent: context.agent(),
        name,
        purpose,
        program,
        inputs: inputs.into_iter().collect(),
        outputs: outputs.into_iter().collect(),
        scenarios: read_scenarios(&scenarios)?,
        energy_micros: energy,
    };
    let (reads, emits) = kinds(&request.inputs, &request.outputs);
    let card = Card::new(format!("test `{}` in its quarantine?", request.name))
        .with("file", file.display().to_string())
        .with("size", size)
        .with("hash", hash.hex())
        .with("purpose", &request.purpose)
        .with("reads", reads)
        .with("emits", emits)
        .with("then", "nothing ticks: `motor neuron approve` asks again");
    let word = confirm(&card, context).await?;
    let neuron: Neuron = session.ask(&Call::post("/v1/neurons", &request)?.with(word)).await?;
    context.answer(&neuron, || outcome(&neuron))?;
    Ok(if neuron.status == NeuronStatus::Rejected { CommandExit::Failed } else { CommandExit::Ok })
}

/// The program in a file, by the ending of its name, with its size and the hash of the file.
fn program(path: &Path) -> Result<(ProposedProgram, String, ContentHash), Refusal> {
    let size = |bytes: usize| text::bytes(u64::try_from(bytes).unwrap_or(u64::MAX));
    match path.extension().and_then(std::ffi::OsStr::to_str) {
        Some("js") => {
            let source = input::text_file(path)?;
            let (size, hash) = (size(source.len()), ContentHash::of(source.as_bytes()));
            Ok((ProposedProgram::Source(source), size, hash))
        }
        Some("wasm") => {
            let bytes = input::binary_file(path, MAX_COMPONENT_BYTES)?;
            Ok((ProposedProgram::Component(STANDARD.encode(&bytes)), size(bytes.len()), ContentHash::of(&bytes)))
        }
        _ => Err(usage(
            format!("`{}` ends neither in `.js` nor in `.wasm`", path.display()),
            "name a file with code in JavaScript, or a component of the world `neuron`",
        )),
    }
}

fn read_scenarios(path: &Path) -> Result<Vec<Scenario>, Refusal> {
    serde_json::from_str(&input::text_file(path)?).map_err(|error| {
        let reason = format!("`{}` is not a list of scenarios: {error}", path.display());
        Refusal::new(RefusalCode::InvalidRequest, reason)
            .with_remedy("write `[{\"signal\": {\"kind\": \"run.completed\", \"data\": {}}, \"emits\": []}]`")
    })
}

fn outcome(neuron: &Neuron) -> String {
    let name = &neuron.draft.name;
    match (neuron.status, &neuron.fault) {
        (NeuronStatus::Quarantined, _) => {
            let scenarios = neuron.draft.scenarios.len();
            format!(
                "{name} has passed its quarantine of {scenarios} scenarios\n`motor neuron approve {name}` shows it and lets it be tried"
            )
        }
        (NeuronStatus::Rejected, Some(fault)) => {
            let reason = Foreign(&fault.reason).visible(MAX_SHOWN);
            format!(
                "{name} is refused ({}): {reason}\nmend the program or its scenarios, and propose it again",
                fault.code.as_str()
            )
        }
        (status, _) => format!("{name} was proposed before, and is {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_code_or_a_component_by_its_ending() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8]| {
            let path = directory.path().join(name);
            std::fs::write(&path, content).unwrap();
            program(&path)
        };
        assert!(
            matches!(file("a.js", b"return []"), Ok((ProposedProgram::Source(source), ..)) if source == "return []")
        );
        let (component, _, hash) = file("a.wasm", b"\0asm").unwrap();
        assert!(matches!(component, ProposedProgram::Component(text) if text == STANDARD.encode(b"\0asm")));
        assert_eq!(hash, ContentHash::of(b"\0asm"));
        let most = usize::try_from(MAX_COMPONENT_BYTES).unwrap();
        assert!(file("b.wasm", &vec![0; most]).is_ok());
        for (name, content) in [("c.wasm", vec![0; most + 1]), ("a.js", vec![0xff]), ("a", vec![]), ("a.py", vec![])] {
            assert_eq!(file(name, &content).unwrap_err().code, RefusalCode::InvalidRequest, "{name}");
        }
        assert!(program(&directory.path().join("missing.js")).is_err());
    }

    #[test]
    fn scenarios_are_a_list_and_their_kinds_are_checked() {
        let directory = tempfile::tempdir().unwrap();
        let read = |content: &str| {
            let path = directory.path().join("scenarios.json");
            std::fs::write(&path, content).unwrap();
            read_scenarios(&path)
        };
        let right = r#"[{"signal":{"kind":"run.completed","data":{"summary":"a"}},"emits":["price.seen"]}]"#;
        assert_eq!(read(right).unwrap().len(), 1);
        for wrong in
            ["", "{}", "[1]", r#"[{"signal":{"kind":"motor_result"}}]"#, r#"[{"signal":{"kind":"a"},"other":1}]"#]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
