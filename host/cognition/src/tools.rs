//! The tools of cognition (SPEC COG-1): which exist in a turn, their schemas, and their arguments as types.
//!
//! Architecture invariant: a tool that needs the owner's authority exists only in a turn that a message of the owner began, with the
//! authority of that message at hand (SPEC CONSENT-1). In any other turn it is not in the toolset, and a call of it is refused
//! again when it is executed.

mod specs;

use base::RunId;
use ledger::PeerId;
use llm::{ToolSpec, check_arguments};
use serde::Deserialize;
use serde_json::Value;

use crate::turn::TriggerKind;

/// Calls of one reply that are executed.
pub(crate) const MAX_CALLS: usize = 8;

/// The powers of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TurnPowers {
    /// May delegate work, compute in the isolated sandbox, see the runs of this conversation, skills and peers, and recall memories. A
    /// signal may: none of it reaches beyond the host, and the texts that it shows taint the conversation.
    pub acts: bool,
    /// May name domains for a run: only the owner's own message gives reason to. A signal may carry text from the web.
    pub names_domains: bool,
    /// May pass on the owner's answers.
    pub answers: bool,
    /// May keep memories: only at a message of the owner, so that no text of a run or a peer gets a hold on later conversations.
    pub remembers: bool,
    /// May propose that the code of a run becomes a neuron: only at a message of the owner, who decides about it later.
    pub learns: bool,
    /// May review skills, which is kept, and list credentials: a signal may carry text that looks for them.
    pub manages: bool,
    /// May assess peers (SPEC LED-4): at a message of the owner with its authority, while the cortex is off.
    pub assesses: bool,
}

impl TurnPowers {
    /// `has_authority`: the owner's message of the turn still carries its proof.
    pub fn of(kind: TriggerKind, has_authority: bool) -> Self {
        match kind {
            TriggerKind::OwnerMessage => Self {
                acts: true,
                names_domains: true,
                answers: has_authority,
                remembers: true,
                learns: true,
                manages: true,
                assesses: false,
            },
            TriggerKind::Signal => Self { acts: true, ..Self::default() },
            TriggerKind::PeerMessage => Self::default(),
        }
    }

    /// The same powers, with that to assess peers if it is offered and the owner's authority is at hand.
    pub fn assessing(self, is_offered: bool) -> Self {
        Self { assesses: self.answers && is_offered, ..self }
    }
}

/// A call with arguments that fit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CoreCall {
    Say { text: String },
    Act(ActCall),
    Task(TaskCall),
    Remember { text: String },
    Recall { query: String },
    Consolidate(ConsolidateCall),
    Sense,
    Execute { code: String },
    Skill(SkillCall),
    Credentials,
    ListPeers { after: Option<PeerId> },
    QueryPeer { peer: PeerId },
    AssessPeer(AssessCall),
}

/// The arguments of `core_act`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActCall {
    pub task: String,
    #[serde(default)]
    pub tools: Vec<String>,
    #[serde(default)]
    pub domains: Vec<String>,
    #[serde(default)]
    pub skill: Option<String>,
    #[serde(default, rename = "approvalRequired")]
    pub approval_required: bool,
}

/// The arguments of `core_task`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskCall {
    #[serde(rename = "runId")]
    pub run: RunId,
    pub action: TaskAction,
    #[serde(default)]
    pub answer: Option<String>,
    #[serde(default)]
    pub guidance: Option<String>,
}

/// The arguments of `core_consolidate`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ConsolidateCall {
    #[serde(default, rename = "runId")]
    pub run: Option<RunId>,
    #[serde(default)]
    pub code: Option<String>,
    pub name: String,
    pub purpose: String,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    #[serde(default, deserialize_with = "base::whole::option")]
    pub energy_micros: Option<u64>,
    #[serde(default)]
    pub scenarios: Vec<Value>,
}

/// An action on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskAction {
    Status,
    Respond,
    Cancel,
    Retry,
}

/// The arguments of `core_skill`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SkillCall {
    pub action: SkillAction,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub file: Option<String>,
}

/// An action on a skill. None of them gives it a power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SkillAction {
    List,
    Show,
    Review,
}

/// The arguments of `core_assess_peer`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AssessCall {
    #[serde(rename = "peerId")]
    pub peer: PeerId,
    #[serde(deserialize_with = "base::whole::signed")]
    pub trust: i64,
    pub rationale: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SayCall {
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SenseCall {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecallCall {
    query: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecuteCall {
    code: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CredentialCall {
    /// The only one is `list`, by the schema.
    #[serde(default, rename = "action")]
    _action: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListPeersCall {
    #[serde(default)]
    after: Option<PeerId>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryPeerCall {
    #[serde(rename = "peerId")]
    peer: PeerId,
}

/// The tools of a turn.
pub(crate) fn toolset(powers: TurnPowers) -> Vec<ToolSpec> {
    let mut tools = vec![specs::say()];
    if powers.acts {
        tools.push(specs::act(powers.names_domains));
        tools.push(specs::task(powers.answers));
        tools.push(specs::recall());
        tools.push(specs::sense());
        tools.push(specs::execute());
        tools.push(specs::skill(powers.manages));
        tools.push(specs::list_peers());
        tools.push(specs::query_peer());
    }
    if powers.remembers {
        tools.push(specs::remember());
    }
    if powers.learns {
        tools.push(specs::consolidate());
    }
    if powers.manages {
        tools.push(specs::credential());
    }
    if powers.assesses {
        tools.push(specs::assess_peer());
    }
    tools
}

/// Reads a call against the toolset of its turn.
///
/// # Errors
/// With the reason, for the model.
pub(crate) fn read(powers: TurnPowers, name: &str, arguments: Value) -> Result<CoreCall, String> {
    let tools = toolset(powers);
    let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let name = base::text::Foreign(name).line(80);
        return Err(format!("there is no tool `{name}` in this turn: there are {}", names.join(", ")));
    };
    if let Some(command) = command_of_owner(name, &arguments) {
        return Err(format!("no tool does that, and no message in a conversation: the owner does it with `{command}`"));
    }
    let arguments = check_arguments(&tool.parameters, arguments)?;
    let wrong = |error: serde_json::Error| format!("the arguments are refused: {error}");
    match name {
        "core_say" => serde_json::from_value(arguments).map(|SayCall { text }| CoreCall::Say { text }).map_err(wrong),
        "core_remember" => {
            serde_json::from_value(arguments).map(|SayCall { text }| CoreCall::Remember { text }).map_err(wrong)
        }
        "core_recall" => {
            serde_json::from_value(arguments).map(|RecallCall { query }| CoreCall::Recall { query }).map_err(wrong)
        }
        "core_sense" => serde_json::from_value(arguments).map(|SenseCall {}| CoreCall::Sense).map_err(wrong),
        "core_consolidate" => serde_json::from_value(arguments).map(CoreCall::Consolidate).map_err(wrong),
        "core_act" => serde_json::from_value(arguments).map(CoreCall::Act).map_err(wrong),
        "core_execute" => {
            serde_json::from_value(arguments).map(|ExecuteCall { code }| CoreCall::Execute { code }).map_err(wrong)
        }
        "core_skill" => serde_json::from_value(arguments).map(CoreCall::Skill).map_err(wrong),
        "core_credential" => {
            serde_json::from_value(arguments).map(|CredentialCall { .. }| CoreCall::Credentials).map_err(wrong)
        }
        "core_list_peers" => serde_json::from_value(arguments)
            .map(|ListPeersCall { after }| CoreCall::ListPeers { after })
            .map_err(wrong),
        "core_query_peer" => {
            serde_json::from_value(arguments).map(|QueryPeerCall { peer }| CoreCall::QueryPeer { peer }).map_err(wrong)
        }
        "core_assess_peer" => serde_json::from_value(arguments).map(CoreCall::AssessPeer).map_err(wrong),
        _ => serde_json::from_value(arguments).map(CoreCall::Task).map_err(wrong),
    }
}

/// The command for an action that is the owner's alone, if a call asks for one. A skill's approval lasts, and is about all of its bytes,
/// which no message shows; a secret that a model sees is no secret.
fn command_of_owner(tool: &str, arguments: &Value) -> Option<&'static str> {
    let action = arguments.get("action").and_then(Value::as_str).unwrap_or_default();
    match (tool, action) {
        ("core_skill", "approve") => Some("motor skill approve NAME"),
        ("core_skill", "reject" | "revoke") => Some("motor skill reject NAME"),
        ("core_skill", "add" | "fetch" | "install") => Some("motor skill add SOURCE"),
        ("core_skill", "update") => Some("motor skill update NAME"),
        ("core_skill", "rollback") => Some("motor skill rollback NAME"),
        ("core_skill", "delete" | "remove") => Some("motor skill delete NAME"),
        ("core_credential", "set" | "store" | "add" | "bind" | "update") => {
            Some("motor credential set NAME --domain DOMAIN")
        }
        ("core_credential", "accept" | "approve") => Some("motor credential accept NAME"),
        ("core_credential", "reject") => Some("motor credential reject NAME"),
        ("core_credential", "delete" | "remove" | "forget") => Some("motor credential delete NAME"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KINDS: [TriggerKind; 3] = [TriggerKind::OwnerMessage, TriggerKind::PeerMessage, TriggerKind::Signal];

    fn respond() -> Value {
        json!({ "runId": "run_1", "action": "respond", "answer": "yes" })
    }

    #[test]
    fn only_a_message_of_the_owner_with_its_authority_can_answer() {
        for kind in KINDS {
            for has_authority in [false, true] {
                let powers = TurnPowers::of(kind, has_authority);
                let may = kind == TriggerKind::OwnerMessage && has_authority;
                assert_eq!(read(powers, "core_task", respond()).is_ok(), may, "{kind:?} {has_authority}");
                let shown = serde_json::to_string(&toolset(powers)).unwrap();
                assert_eq!(shown.contains("respond"), may, "{kind:?} {has_authority}");
            }
        }
    }

    #[test]
    fn a_peer_makes_the_agent_talk_and_nothing_else() {
        let powers = TurnPowers::of(TriggerKind::PeerMessage, true);
        assert_eq!(toolset(powers).len(), 1);
        assert!(read(powers, "core_act", json!({ "task": "t" })).is_err());
        assert!(read(powers, "core_say", json!({ "text": "hello" })).is_ok());
    }

    #[test]
    fn only_a_message_of_the_owner_is_remembered_and_no_peer_recalls() {
        for (kind, remembers, recalls) in [
            (TriggerKind::OwnerMessage, true, true),
            (TriggerKind::Signal, false, true),
            (TriggerKind::PeerMessage, false, false),
        ] {
            let powers = TurnPowers::of(kind, true);
            assert_eq!(read(powers, "core_remember", json!({ "text": "t" })).is_ok(), remembers, "{kind:?}");
            assert_eq!(read(powers, "core_recall", json!({ "query": "t" })).is_ok(), recalls, "{kind:?}");
        }
    }

    #[test]
    fn only_a_message_of_the_owner_consolidates_and_no_peer_senses() {
        let call = json!({
            "runId": "run_1", "name": "n", "purpose": "p", "inputs": ["run.completed"], "outputs": ["a.b"], "energyMicros": 500.0,
        });
        for (kind, learns, senses) in [
            (TriggerKind::OwnerMessage, true, true),
            (TriggerKind::Signal, false, true),
            (TriggerKind::PeerMessage, false, false),
        ] {
            let powers = TurnPowers::of(kind, true);
            assert_eq!(read(powers, "core_consolidate", call.clone()).is_ok(), learns, "{kind:?}");
            assert_eq!(read(powers, "core_sense", json!({})).is_ok(), senses, "{kind:?}");
        }
        let powers = TurnPowers::of(TriggerKind::OwnerMessage, true);
        for (field, value) in [("inputs", json!(null)), ("name", json!("../x")), ("approved", json!(true))] {
            let mut call = call.clone();
            call[field] = value;
            assert!(read(powers, "core_consolidate", call).is_err(), "{field}");
        }
    }

    #[test]
    fn each_tool_exists_only_in_the_turns_that_have_its_power() {
        let cases = [
            ("core_execute", json!({ "code": "return 1" }), true),
            ("core_skill", json!({ "action": "list" }), true),
            ("core_skill", json!({ "action": "show", "name": "csv" }), true),
            ("core_skill", json!({ "action": "review", "name": "csv" }), false),
            ("core_list_peers", json!({ "after": "mai" }), true),
            ("core_query_peer", json!({ "peerId": "mai" }), true),
            ("core_credential", json!({}), false),
            ("core_credential", json!({ "action": "list" }), false),
        ];
        for (name, call, in_signal) in cases {
            for (kind, may) in
                [(TriggerKind::OwnerMessage, true), (TriggerKind::Signal, in_signal), (TriggerKind::PeerMessage, false)]
            {
                let powers = TurnPowers::of(kind, true).assessing(true);
                assert_eq!(read(powers, name, call.clone()).is_ok(), may, "{name} {call} {kind:?}");
            }
        }
    }

    #[test]
    fn peers_are_assessed_only_at_a_message_of_the_owner_with_its_authority_while_it_is_offered() {
        let call = || json!({ "peerId": "mai", "trust": 8.0, "rationale": "paid" });
        for kind in KINDS {
            for has_authority in [false, true] {
                for is_offered in [false, true] {
                    let powers = TurnPowers::of(kind, has_authority).assessing(is_offered);
                    let may = kind == TriggerKind::OwnerMessage && has_authority && is_offered;
                    assert_eq!(read(powers, "core_assess_peer", call()).is_ok(), may, "{kind:?}");
                    let has = toolset(powers).iter().any(|tool| tool.name == "core_assess_peer");
                    assert_eq!(has, may, "{kind:?} {has_authority} {is_offered}");
                }
            }
        }
        let [with, without] = [true, false]
            .map(|is_offered| toolset(TurnPowers::of(TriggerKind::OwnerMessage, true).assessing(is_offered)));
        assert_eq!(with[..with.len() - 1], without, "nothing else of the toolset changes");
        let powers = TurnPowers::of(TriggerKind::OwnerMessage, true).assessing(true);
        for (field, value) in [
            ("trust", json!(11)),
            ("trust", json!(0.5)),
            ("rationale", json!("")),
            ("peerId", json!("a b")),
            ("infoScore", json!(9)),
        ] {
            let mut call = call();
            call[field] = value;
            assert!(read(powers, "core_assess_peer", call.clone()).is_err(), "{call}");
        }
    }

    #[test]
    fn decisions_about_skills_and_credentials_are_refused_with_the_owners_command() {
        let powers = TurnPowers::of(TriggerKind::OwnerMessage, true);
        for (tool, action, command) in [
            ("core_skill", "approve", "`motor skill approve NAME`"),
            ("core_skill", "delete", "`motor skill delete NAME`"),
            ("core_skill", "update", "`motor skill update NAME`"),
            ("core_credential", "set", "`motor credential set NAME --domain DOMAIN`"),
            ("core_credential", "delete", "`motor credential delete NAME`"),
        ] {
            let call = json!({ "action": action, "name": "csv", "value": "s3cret", "yes": true });
            let refused = read(powers, tool, call).unwrap_err();
            assert!(refused.contains(command) && !refused.contains("s3cret"), "{refused}");
        }
        assert!(read(powers, "core_skill", json!({ "action": "trust", "name": "csv" })).is_err());
        assert!(read(powers, "core_credential", json!({ "action": "show", "name": "key" })).is_err());
    }

    #[test]
    fn only_the_owners_message_names_domains() {
        let call = json!({ "task": "t", "domains": ["a.example.com"] });
        for (kind, may) in [(TriggerKind::OwnerMessage, true), (TriggerKind::Signal, false)] {
            let powers = TurnPowers::of(kind, false);
            assert_eq!(read(powers, "core_act", call.clone()).is_ok(), may, "{kind:?}");
            assert!(read(powers, "core_act", json!({ "task": "t" })).is_ok(), "{kind:?}");
        }
    }

    #[test]
    fn arguments_are_checked() {
        let powers = TurnPowers::of(TriggerKind::OwnerMessage, true);
        assert!(read(powers, "core_act", json!({})).is_err());
        assert!(read(powers, "core_task", json!({ "runId": "../etc", "action": "status" })).is_err());
        assert!(read(powers, "core_task", json!({ "runId": "run_1", "action": "delete" })).is_err());
        assert!(
            read(powers, "core_shell", json!({})).unwrap_err().contains("core_say, core_act, core_task, core_recall")
        );
        let task = read(powers, "core_task", respond()).unwrap();
        assert!(matches!(task, CoreCall::Task(TaskCall { action: TaskAction::Respond, .. })));
    }
}
