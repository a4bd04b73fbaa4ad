//! The JSON that each command prints with `--json`, as schemas made from the types that are printed (SPEC CLI-0).
//!
//! `motor help json --json` prints them as one document. A field that a schema lacks is one that the types lack, and
//! `tests/it/json_documents.rs` holds the outputs of the real program against it.

use std::collections::BTreeMap;

use agent::api::skills::{
    SkillDiff, SkillFetch, SkillReviewReply, SkillRollback, SkillText, SkillVerification, SkillVersion,
};
use agent::api::why::WhyReply;
use agent::components::{CallReply, ComponentReport};
use agent::config::ConfigEntry;
use agent::doctor::{Finding, HomeVerification};
use agent::{
    AcceptedLoss, ActReply, AgentSpend, CortexStatus, Decision, EnergyReport, ExecuteReply, Explanation, LandReply,
    LandingSummary, NeuronDetail, NeuronList, ReflectReply, ReflectorSummary, RunChanges, StagedTask, StagedWrite,
    TaskPlan, TaskSummary, Verification,
};
use cognition::{ChatEvent, ConversationSummary, ForgottenConversation, Memory};
use consent::{ApiToken, OwnerStatus};
use cortex::{Belief, Commitment, CortexSignal, Directive, ReflectionRecord};
use ledger::{Assessment, ForgottenPeer, PeerReport, PeerSummary};
use motor::{CancelReply, CommandReply, LiveEvent, RetryReply, TellReply};
use neurons::{Neuron, NeuronSignal};
use receipts::SignedReceipt;
use runtime::ToolDescription;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema, json_schema};
use serde::Serialize;
use serde_json::{Map, Value};
use signals::Signal;
use skills::SkillSummary;
use vault::CredentialInfo;

use super::act::LeftRun;
use super::answers::{
    AcceptedCredential, ChangedKey, ClientInstall, ClientSnippet, ConfigFile, DeletedCredential, EditedConfig,
    Listening, MadeDecision, PrintedToken, RejectedCredential, SetCredentialAnswer, Term,
};
use super::author::{CaseReport, Created, Interfaces, Packed};
use super::demo::DemoReport;
use super::follow::RunEnd;
use super::setup::SetupReport;
use super::skill::RemoveReply;
use super::task::{DeletedRuns, RunLog, ShownRun};
use crate::http::CreatedToken;
use crate::output::Refused;

/// Columns of a command in the list for people.
const COLUMNS: usize = 25;
/// The dialect of the schemas.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Makes a schema, and adds the types that it refers to to the definitions.
type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// One command and its output.
struct CommandOutput {
    command: &'static str,
    /// One value for each line, as it comes, instead of one value.
    lines: bool,
    schema: MakeSchema,
}

/// The schemas of all outputs.
#[derive(Serialize)]
pub(super) struct Documents {
    #[serde(rename = "$schema")]
    dialect: &'static str,
    title: &'static str,
    /// The output of each command.
    commands: BTreeMap<&'static str, Document>,
    /// The output of any command that is refused.
    refusal: Schema,
    #[serde(rename = "$defs")]
    definitions: Map<String, Value>,
}

/// The output of one command.
#[derive(Serialize)]
struct Document {
    /// Whether each line of the output is a value; otherwise the output is one value.
    lines: bool,
    schema: Schema,
}

fn one<T: JsonSchema + ?Sized>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Any of these: the options of the command decide.
fn any(generator: &mut SchemaGenerator, schemas: &[MakeSchema]) -> Schema {
    let schemas: Vec<_> = schemas.iter().map(|schema| schema(generator)).collect();
    json_schema!({ "anyOf": schemas })
}

fn either<A: JsonSchema, B: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    any(generator, &[one::<A>, one::<B>])
}

/// Tools in the form of the Model Context Protocol, which defines it.
fn mcp_tools(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["name", "inputSchema"],
            "properties": { "name": { "type": "string" }, "inputSchema": { "type": "object" } },
            "additionalProperties": true,
        },
    })
}

fn act(generator: &mut SchemaGenerator) -> Schema {
    any(generator, &[one::<RunEnd>, one::<ActReply>, one::<LeftRun>])
}

fn plan(generator: &mut SchemaGenerator) -> Schema {
    any(generator, &[one::<TaskPlan>, one::<RunEnd>, one::<LeftRun>])
}

/// A term, all terms, or these schemas.
fn help(generator: &mut SchemaGenerator) -> Schema {
    let schemas = |_: &mut SchemaGenerator| {
        json_schema!({
            "type": "object",
            "required": ["$schema", "commands", "refusal", "$defs"],
            "additionalProperties": true,
        })
    };
    any(generator, &[one::<Term>, one::<Vec<Term>>, schemas])
}

fn update(generator: &mut SchemaGenerator) -> Schema {
    any(generator, &[one::<SkillSummary>, one::<SkillFetch>, one::<Vec<SkillFetch>>])
}

const fn value(command: &'static str, schema: MakeSchema) -> CommandOutput {
    CommandOutput { command, lines: false, schema }
}

const fn lines(command: &'static str, schema: MakeSchema) -> CommandOutput {
    CommandOutput { command, lines: true, schema }
}

const OUTPUTS: &[CommandOutput] = &[
    value("act", act),
    lines("attach", one::<LiveEvent>),
    value("build", one::<ComponentReport>),
    value("call", either::<CallReply, Vec<ToolDescription>>),
    lines("chat", one::<ChatEvent>),
    value("chat forget", one::<ForgottenConversation>),
    value("chat list", either::<Vec<ConversationSummary>, Vec<ForgottenConversation>>),
    value("config edit", one::<EditedConfig<'_>>),
    value("config get", one::<ConfigEntry>),
    value("config path", one::<ConfigFile>),
    value("config set", one::<ChangedKey<'_>>),
    value("config show", one::<Vec<ConfigEntry>>),
    value("config unset", one::<ChangedKey<'_>>),
    value("cortex beliefs", one::<Vec<Belief>>),
    value("cortex commitments", one::<Vec<Commitment>>),
    value("cortex directives", one::<Vec<Directive>>),
    value("cortex dismiss", one::<Vec<Directive>>),
    value("cortex done", one::<Vec<Commitment>>),
    value("cortex drop", one::<Vec<Commitment>>),
    value("cortex history", one::<Vec<ReflectionRecord>>),
    value("cortex off", one::<CortexStatus>),
    value("cortex on", one::<CortexStatus>),
    value("cortex reflect", one::<ReflectReply>),
    value("cortex reflector approve", one::<ReflectorSummary>),
    value("cortex reflector list", one::<Vec<ReflectorSummary>>),
    value("cortex reflector revoke", one::<Vec<ReflectorSummary>>),
    value("cortex signals", one::<Vec<CortexSignal>>),
    value("cortex status", one::<CortexStatus>),
    value("credential accept", one::<AcceptedCredential>),
    value("credential delete", one::<DeletedCredential>),
    value("credential list", one::<Vec<CredentialInfo>>),
    value("credential reject", one::<RejectedCredential>),
    value("credential set", one::<SetCredentialAnswer>),
    value("demo", one::<DemoReport>),
    value("diff", one::<RunChanges>),
    value("doctor", either::<Vec<Finding>, AcceptedLoss>),
    value("energy", one::<EnergyReport>),
    value("execute", one::<ExecuteReply>),
    value("explain", one::<Explanation>),
    value("help", help),
    value("inspect", one::<ComponentReport>),
    value("land", either::<LandReply, Vec<LandingSummary>>),
    value("ledger assess", one::<Assessment>),
    value("ledger forget", one::<ForgottenPeer>),
    value("ledger list", either::<Vec<PeerSummary>, Vec<ForgottenPeer>>),
    value("ledger note", one::<PeerReport>),
    value("ledger show", one::<PeerReport>),
    value("mcp install", either::<ClientInstall, ClientSnippet>),
    value("mcp tools", mcp_tools),
    value("memory forget", one::<Vec<Memory>>),
    value("memory list", one::<Vec<Memory>>),
    value("memory search", one::<Vec<Memory>>),
    value("memory show", one::<Memory>),
    value("network allow", one::<MadeDecision<'_>>),
    value("network deny", one::<MadeDecision<'_>>),
    value("network forget", one::<MadeDecision<'_>>),
    value("network list", one::<Vec<Decision>>),
    value("neuron approve", one::<Neuron>),
    value("neuron forget", one::<NeuronList>),
    value("neuron list", one::<NeuronList>),
    value("neuron off", one::<NeuronList>),
    value("neuron on", one::<NeuronList>),
    value("neuron propose", one::<Neuron>),
    value("neuron reject", one::<Neuron>),
    value("neuron show", one::<NeuronDetail>),
    value("neuron signals", one::<Vec<NeuronSignal>>),
    value("new", one::<Created<'_>>),
    value("owner rotate", one::<OwnerStatus>),
    value("owner seal", one::<OwnerStatus>),
    value("owner status", one::<OwnerStatus>),
    value("owner token", one::<PrintedToken<'_>>),
    value("owner unseal", one::<OwnerStatus>),
    value("pack", one::<Packed<'_>>),
    value("plan", plan),
    value("receipt show", one::<SignedReceipt>),
    value("receipt verify", one::<Verification>),
    lines("serve", one::<Listening>),
    value("setup", one::<SetupReport>),
    lines("signals", one::<Signal>),
    value("skill add", one::<SkillSummary>),
    value("skill approve", one::<SkillSummary>),
    value("skill delete", one::<RemoveReply>),
    value("skill diff", one::<SkillDiff>),
    value("skill list", one::<Vec<SkillSummary>>),
    value("skill reject", one::<SkillSummary>),
    value("skill review", one::<SkillReviewReply>),
    value("skill rollback", one::<SkillRollback>),
    value("skill show", one::<SkillText>),
    value("skill update", update),
    value("skill verify", one::<Vec<SkillVerification>>),
    value("skill versions", one::<Vec<SkillVersion>>),
    value("spend", one::<Vec<AgentSpend>>),
    value("task approve", one::<CommandReply>),
    value("task cancel", one::<CancelReply>),
    value("task delete", one::<DeletedRuns>),
    value("task discard", one::<StagedTask>),
    value("task list", one::<Vec<TaskSummary>>),
    value("task log", one::<RunLog>),
    value("task respond", one::<CommandReply>),
    value("task retry", one::<RetryReply>),
    value("task send", one::<Vec<StagedWrite>>),
    value("task staged", one::<StagedTask>),
    value("task status", one::<ShownRun<'_>>),
    value("task tell", one::<TellReply>),
    value("test", one::<Vec<CaseReport>>),
    value("token create", one::<CreatedToken>),
    value("token list", one::<Vec<ApiToken>>),
    value("token revoke", one::<ApiToken>),
    value("undo", one::<LandReply>),
    value("verify", one::<HomeVerification>),
    value("why", one::<WhyReply>),
    value("wit", one::<Interfaces<'_>>),
];

impl Documents {
    /// The commands, and whether each prints one value or lines, for people.
    pub(super) fn page(&self) -> String {
        let row = |(command, document): (&&str, &Document)| {
            let prints = if document.lines { "a value on each line" } else { "one value" };
            format!("{command:COLUMNS$}  {prints}\n")
        };
        let rows: String = self.commands.iter().map(row).collect();
        format!("{rows}\n`motor help json --json` prints the JSON Schema of each")
    }
}

/// The schemas of all outputs, made from the types.
pub(super) fn all() -> Documents {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| settings.meta_schema = None);
    let mut generator = settings.into_generator();
    let document = |CommandOutput { command, lines, schema }: &CommandOutput| {
        (*command, Document { lines: *lines, schema: schema(&mut generator) })
    };
    let commands = OUTPUTS.iter().map(document).collect();
    let refusal = one::<Refused<'_>>(&mut generator);
    let definitions = generator.take_definitions(true);
    let title = "What `motor COMMAND --json` prints";
    Documents { dialect: DIALECT, title, commands, refusal, definitions }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::super::Cli;
    use super::*;

    /// Commands whose output does not depend on `--json`: it is for a shell, a protocol, a file or a person alone.
    const OTHERS: [&str; 4] = ["completions", "dev", "mcp", "trace export"];

    /// The commands that do something themselves, by their words.
    fn leaves(command: &clap::Command, words: &str, found: &mut BTreeSet<String>) {
        for below in command.get_subcommands() {
            let words = format!("{words} {}", below.get_name());
            if !below.has_subcommands() || !below.is_subcommand_required_set() {
                found.insert(words.trim().to_owned());
            }
            leaves(below, &words, found);
        }
    }

    #[test]
    fn every_command_is_described() {
        let mut commands = BTreeSet::new();
        leaves(&Cli::command(), "", &mut commands);
        let described = OUTPUTS.iter().map(|output| output.command).chain(OTHERS).map(str::to_owned);
        assert_eq!(described.collect::<BTreeSet<_>>(), commands);
        assert!(OUTPUTS.is_sorted_by_key(|output| output.command));
    }

    #[test]
    fn references_lead_to_definitions() {
        let text = serde_json::to_string(&all()).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let targets: Vec<&str> =
            text.split("\"$ref\":\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert!(targets.len() > 50);
        for target in targets {
            assert!(document.pointer(target).is_some(), "{target}");
        }
    }

    #[test]
    fn the_page_names_every_command() {
        let page = include_str!("../../../../docs/json.md");
        for CommandOutput { command, .. } in OUTPUTS {
            assert!(page.contains(&format!("| `{command}` |")), "{command}");
        }
    }
}
