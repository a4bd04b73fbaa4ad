//! Stored records of conversations, and the events that clients see of them.
//!
//! Keys of `Table::Conversations`:
//!
//! | key | value |
//! | --- | --- |
//! | `n`, agent, `00`, channel, `00`, peer (empty: the owner) | the conversation's id |
//! | `h`, id | its head |
//! | `e`, id, sequence (8) | one entry |
//! | `m`, id, `00`, message id | the entry of a message, for its idempotency |
//! | `w`, id | the conversation has work: a host that starts takes it up |
//! | `o`, id | the last entry that the channel's outbox has claimed; there is one from the first message of a served channel on |
//! | `f`, agent, `00`, hash of the name | the note that a conversation of this name was forgotten |
//! | `d`, id | the entries of this forgotten conversation are being deleted |
//! | `s` | the last signal that was taken in |
//! | `k`, agent | the last note that was taken in, and how many were lately |
//! | `l`, agent | the channel of the owner's latest message |
//! | `r`, agent, `00`, id | a memory of the agent |
//! | `p`, agent, `00`, key of a call | a program of `core_execute` that can become a neuron |

use base::{AgentName, ContentHash, Provenance, RunId, Timestamp};
use ledger::{ChannelName, PeerId};
use llm::{ProviderState, RequestedCall};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compact::RollingSummary;
use crate::extent::Extent;
use crate::sources::Sources;
use crate::turn::{TriggerKind, Turn};

/// Names a conversation: the channel and the other side. Only the owner has no peer id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationKey {
    /// The agent that is talked to.
    pub agent: AgentName,
    /// The channel that messages come through.
    pub channel: ChannelName,
    /// The peer on the other side; `None`: the owner.
    pub peer: Option<PeerId>,
}

/// The random id of a conversation. It is part of idempotency keys of runs and never leaves the host, so that no other caller
/// can start a run in the name of a conversation.
pub(crate) type ConversationId = String;

/// The beginning of the names of an agent's conversations.
pub(crate) fn agent_prefix(agent: &AgentName) -> Vec<u8> {
    [b"n", agent.as_str().as_bytes(), b"\0"].concat()
}

pub(crate) fn name_key(key: &ConversationKey) -> Vec<u8> {
    let peer = key.peer.as_ref().map(PeerId::as_str).unwrap_or_default();
    let mut bytes = agent_prefix(&key.agent);
    bytes.extend(key.channel.as_str().as_bytes());
    bytes.push(0);
    bytes.extend(peer.as_bytes());
    bytes
}

/// The channel and the peer in the name of a conversation; the peer is empty for the owner.
pub(crate) fn channel_and_peer(name: &[u8]) -> Option<(&[u8], &[u8])> {
    // None of the parts has a zero byte.
    let mut parts = name.splitn(3, |byte| *byte == 0).skip(1);
    Some((parts.next()?, parts.next()?))
}

/// A key after the names of all conversations of an agent on a channel, and before those on the next one.
pub(crate) fn end_of_channel(agent: &AgentName, channel: &[u8]) -> Vec<u8> {
    // No text has this byte.
    let mut key = agent_prefix(agent);
    key.extend(channel);
    key.extend(b"\0\xff");
    key
}

/// The beginning of the names of all conversations.
pub(crate) fn names_prefix() -> Vec<u8> {
    b"n".to_vec()
}

/// The beginning of the notes about the forgotten conversations of all agents.
pub(crate) fn notes_prefix() -> Vec<u8> {
    b"f".to_vec()
}

/// The beginning of the notes about an agent's forgotten conversations.
pub(crate) fn forgotten_prefix(agent: &AgentName) -> Vec<u8> {
    [b"f", agent.as_str().as_bytes(), b"\0"].concat()
}

/// The hash that stands for the name of a forgotten conversation: agent, channel and peer, each ended by a zero byte but the last.
pub(crate) fn name_hash(key: &ConversationKey) -> ContentHash {
    ContentHash::of(name_key(key).get(1..).unwrap_or_default())
}

pub(crate) fn forgotten_key(key: &ConversationKey) -> Vec<u8> {
    [forgotten_prefix(&key.agent), name_hash(key).hex().into_bytes()].concat()
}

pub(crate) fn deletion_key(id: &str) -> Vec<u8> {
    [b"d", id.as_bytes()].concat()
}

pub(crate) fn outbox_key(id: &str) -> Vec<u8> {
    [b"o", id.as_bytes()].concat()
}

pub(crate) fn head_key(id: &str) -> Vec<u8> {
    [b"h", id.as_bytes()].concat()
}

pub(crate) fn work_key(id: &str) -> Vec<u8> {
    [b"w", id.as_bytes()].concat()
}

pub(crate) fn entries_prefix(id: &str) -> Vec<u8> {
    [b"e", id.as_bytes()].concat()
}

pub(crate) fn entry_key(id: &str, sequence: u64) -> Vec<u8> {
    let mut key = entries_prefix(id);
    key.extend(sequence.to_be_bytes());
    key
}

pub(crate) fn messages_prefix(id: &str) -> Vec<u8> {
    [b"m", id.as_bytes(), b"\0"].concat()
}

pub(crate) fn message_key(id: &str, message: &str) -> Vec<u8> {
    [&messages_prefix(id), message.as_bytes()].concat()
}

pub(crate) fn note_key(agent: &AgentName) -> Vec<u8> {
    [b"k", agent.as_str().as_bytes()].concat()
}

pub(crate) fn latest_channel_key(agent: &AgentName) -> Vec<u8> {
    [b"l", agent.as_str().as_bytes()].concat()
}

/// The key of the last signal that was taken in.
pub(crate) const SIGNALS_KEY: &[u8] = b"s";

/// The head of a conversation: everything that a worker needs to go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Head {
    pub key: ConversationKey,
    /// The sequence number of the next entry, from 1.
    pub next: u64,
    /// The first entry of the part that the model sees.
    pub window: u64,
    /// Messages and signals without a turn, in order.
    pub pending: Vec<u64>,
    pub turn: Option<Turn>,
    /// Questions of runs that wait for the owner.
    pub questions: Vec<OpenQuestion>,
    /// Runs that were delegated here and are not over.
    pub runs: Vec<RunId>,
    /// Sources of the untrusted content of all entries. `None`: stored before heads had them.
    #[serde(default)]
    pub sources: Option<Sources>,
    /// The part before the window. Default: none, also for heads that were stored before summaries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<RollingSummary>,
    /// Size and last event. `None`: stored before heads had it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extent: Option<Extent>,
}

impl Head {
    pub fn new(key: ConversationKey) -> Self {
        let (pending, questions, runs) = (Vec::new(), Vec::new(), Vec::new());
        let (sources, extent) = (Some(Sources::default()), Some(Extent::default()));
        Self { key, next: 1, window: 1, pending, turn: None, questions, runs, sources, summary: None, extent }
    }

    /// The number of the last entry; 0 before the first.
    pub fn last(&self) -> u64 {
        self.next.saturating_sub(1)
    }

    /// The sources that a delegated run begins tainted by.
    pub fn sources(&self) -> Sources {
        self.sources.clone().unwrap_or_else(Sources::unknown)
    }

    /// Adds the sources of an entry; to an unknown set nothing has to be added.
    pub fn take_in(&mut self, body: &EntryBody) {
        self.sources.get_or_insert_with(Sources::unknown).add_entry(body);
    }

    pub fn has_work(&self) -> bool {
        self.turn.is_some() || !self.pending.is_empty()
    }
}

/// A question of a run that was shown to the owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OpenQuestion {
    pub run: RunId,
    /// The entry it was shown with: an answer is younger.
    pub shown: u64,
    pub asked: AskedBy,
}

/// A run waits for an answer, or for consent to exactly these actions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskedBy {
    /// A question, which any text answers.
    Question {
        /// The id of the question, `ask_…`.
        id: String,
        /// The question in the words of the run's model.
        text: String,
        /// Answers that it offers.
        choices: Vec<String>,
        /// Whether the host asks if the run may go on beyond a ceiling: only a plain yes or no of the owner answers it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_ceiling: bool,
    },
    /// A request for consent.
    Approval {
        /// The id of the request, `apr_…`.
        id: String,
        /// Why it is asked.
        reason: String,
        /// One line for each action.
        summaries: Vec<String>,
        /// The hashes of the actions, in the same order.
        actions: Vec<ContentHash>,
    },
}

impl AskedBy {
    /// The id of the question or request.
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Question { id, .. } | Self::Approval { id, .. } => id,
        }
    }
}

/// One entry of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    pub at: Timestamp,
    pub body: EntryBody,
}

/// The content of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EntryBody {
    Message {
        text: String,
        id: Option<String>,
    },
    Signal {
        signal: u64,
        run: RunId,
        status: String,
        /// The content of the signal for the model, which may repeat text from the web.
        content: String,
        provenance: Provenance,
        /// Where the run had read web content from.
        sources: Vec<String>,
    },
    /// A note of the host, which begins a turn as a signal does.
    Noted {
        /// Text of a model about messages of others.
        content: String,
        sources: Vec<String>,
    },
    Began {
        trigger: u64,
        kind: TriggerKind,
    },
    Replied {
        text: String,
        calls: Vec<RequestedCall>,
        state: Option<ProviderState>,
        input_tokens: u64,
        output_tokens: u64,
        /// Sources of the foreign text in the system prompt that it answers.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sources: Vec<String>,
    },
    Delegated {
        run: RunId,
        task: String,
    },
    Returned {
        call: String,
        name: String,
        content: String,
        /// Where the run that it reports on had read web content from.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sources: Vec<String>,
    },
    Said {
        text: String,
        by: Speaker,
    },
    Ended {
        trigger: u64,
        error: Option<String>,
    },
}

impl EntryBody {
    /// Sources of the untrusted content that the entry may hold.
    pub fn sources(&self) -> &[String] {
        match self {
            Self::Signal { sources, .. }
            | Self::Noted { sources, .. }
            | Self::Replied { sources, .. }
            | Self::Returned { sources, .. } => sources,
            _ => &[],
        }
    }
}

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversationSummary {
    /// The channel that messages come through.
    pub channel: ChannelName,
    /// The peer on the other side; absent: the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<PeerId>,
    /// The number of the last event; some numbers are left out.
    pub last_event: u64,
    /// When it became durable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_at: Option<Timestamp>,
    /// The last message or reply, at most 200 characters of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_text: Option<String>,
    /// Bytes of all its entries.
    #[serde(default)]
    pub bytes: u64,
    /// Messages and signals that wait for their turn, with the one under way.
    pub waiting: usize,
    /// Runs that were delegated here and are not over.
    pub runs: Vec<RunId>,
    /// Runs of which a question is open.
    pub questions: Vec<RunId>,
    /// Sources of the untrusted text that came into this conversation: domains that runs had read from, neurons, and `peer:ID` or
    /// `cortex` for beliefs that the agent had. Runs that are delegated here begin tainted by them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The earlier part, which the model sees in these words. Absent: it sees the whole conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<RollingSummary>,
}

/// The author of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The agent's model.
    Agent,
    /// The host itself, in fixed words.
    Host,
}

/// An event of a conversation, as its client sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatEvent {
    /// Rises with each event of a conversation; numbers are left out.
    pub id: u64,
    /// When it became durable.
    pub at: Timestamp,
    /// The content of the event.
    #[serde(flatten)]
    pub body: ChatEventBody,
}

/// The content of an event of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ChatEventBody {
    /// A message was accepted.
    Message {
        /// The text of the message.
        text: String,
        /// The id that its sender gave it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
    },
    /// A reply for the other side of the conversation.
    Said {
        /// The text of the reply.
        text: String,
        /// The author of the reply.
        by: Speaker,
    },
    /// A run was started.
    Delegated {
        /// Id of the run.
        #[serde(rename = "runId")]
        run: RunId,
        /// The task of the run.
        task: String,
    },
    /// A run that was started here is over or waits.
    Run {
        /// Id of the run.
        #[serde(rename = "runId")]
        run: RunId,
        /// Its status, as in the signal.
        status: String,
    },
    /// The agent's cortex has news: a new directive, or a commitment that is overdue.
    Noted {
        /// The news, one line for each; text of a model.
        text: String,
    },
    /// A turn has ended: its trigger was dealt with.
    Ended {
        /// Id of the message, signal or news.
        trigger: u64,
        /// Why it failed, if it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}
