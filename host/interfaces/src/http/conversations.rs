//! Messages to agents and their conversations: `/v1/messages`, `/v1/conversations`.
//!
//! A message is the owner's only if the request carries the owner's token and names no peer. Any other message names the peer who
//! wrote it: a program that carries the messages of others says whose they are, and its own token never makes it the owner.

use std::convert::Infallible;

use axum::Json;
use axum::extract::State;
use axum::response::sse::Event;
use base::{AgentName, Refusal, RefusalCode};
use cognition::{
    ChatEvent, ConversationFilter, ConversationKey, ConversationSummary, ForgottenConversation,
    MAX_LISTED_CONVERSATIONS, MAX_LISTED_FORGOTTEN, NewMessage, Sender,
};
use futures_util::{Stream, StreamExt as _, stream};
use ledger::{ChannelName, PeerId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events::{EventStream, LastEventId, event};
use super::idempotency::IdempotencyKey;
use super::reply::{ApiResult, ErrorReply};
use super::scope::{Access, Actor, Owner, Reader};
use super::{ApiState, Body, Path, Query};

/// Entries of a conversation in one answer.
const MAX_SHOWN: usize = 1_000;

/// A message to an agent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewChatMessage {
    /// The agent that is talked to.
    #[serde(default)]
    pub agent: AgentName,
    /// The channel that it came through. Default: `chat`.
    #[serde(default = "ChannelName::chat")]
    pub channel: ChannelName,
    /// The peer who wrote it. Without one it is the owner's message, which takes the owner's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<PeerId>,
    /// The text of the message, at most 64 KiB.
    #[schemars(length(min = 1))]
    pub text: String,
    /// Idempotency key: the same key is the same message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// That a message was accepted: it is durable, and is answered in its turn.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageReply {
    /// The event of the message in its conversation. The event `ended` names it when it was dealt with.
    pub event: u64,
    /// Whether it had been accepted before.
    pub is_repeated: bool,
}

pub(super) async fn send(
    actor: Actor,
    State(api): State<ApiState>,
    key: IdempotencyKey,
    Body(message): Body<NewChatMessage>,
) -> ApiResult<MessageReply> {
    let _attachment = api.attached.attach();
    let NewChatMessage { agent, channel, peer, text, key: in_body } = message;
    actor.access.check_agent(&agent)?;
    let id = key.or(in_body)?;
    // A claim to be the owner is always checked, also beside the name of a peer.
    let sender = match (peer, actor.consent()?) {
        (Some(peer), _) => Sender::Peer(peer),
        (None, Some(consent)) => Sender::Owner(consent),
        (None, None) => {
            let reason = "a message without `peer` is the owner's, and the request does not carry the owner's token";
            let refusal = Refusal::new(RefusalCode::ConsentNeeded, reason);
            return Err(refusal.with_remedy("name the peer who wrote the message").into());
        }
    };
    let accepted = api.host.cognition.accept(NewMessage { agent, channel, sender, id, text }).await?;
    Ok(Json(MessageReply { event: accepted.event, is_repeated: accepted.is_repeated }))
}

/// The conversations to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConversationList {
    #[serde(default)]
    agent: AgentName,
    /// Only those on this channel.
    #[serde(default)]
    channel: Option<ChannelName>,
    /// Only those with this peer.
    #[serde(default)]
    peer: Option<PeerId>,
}

pub(super) async fn list(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Query(ConversationList { agent, channel, peer }): Query<ConversationList>,
) -> ApiResult<Vec<ConversationSummary>> {
    access.check_agent(&agent)?;
    let filter = ConversationFilter { channel, peer };
    let mut listed = api.host.cognition.list(&agent, &filter, MAX_LISTED_CONVERSATIONS)?;
    listed.retain(|conversation| conversation.peer.is_some() || access.sees_owner());
    Ok(Json(listed))
}

/// The other side of a conversation, and the number of events.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConversationPart {
    #[serde(default)]
    agent: AgentName,
    /// The peer of the conversation. Default: the owner.
    #[serde(default)]
    peer: Option<PeerId>,
    /// The events of at most so many latest entries, at most 1,000. Default 100.
    #[serde(default = "default_limit")]
    limit: usize,
}

fn default_limit() -> usize {
    100
}

pub(super) async fn show(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path(channel): Path<ChannelName>,
    Query(part): Query<ConversationPart>,
) -> ApiResult<Vec<ChatEvent>> {
    let ConversationPart { agent, peer, limit } = part;
    let key = key(&access, agent, channel, peer)?;
    Ok(Json(api.host.cognition.history(&key, limit.min(MAX_SHOWN))?))
}

/// The other side of a conversation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConversationSide {
    #[serde(default)]
    agent: AgentName,
    /// The peer of the conversation. Default: the owner.
    #[serde(default)]
    peer: Option<PeerId>,
}

/// The events of a conversation, each once it is durable. Ids rise, with gaps: a client that comes back with the last one gets every
/// event once.
pub(super) async fn events(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path(channel): Path<ChannelName>,
    Query(ConversationSide { agent, peer }): Query<ConversationSide>,
    LastEventId(seen): LastEventId,
) -> Result<EventStream<ChatEvent, impl Stream<Item = Result<Event, Infallible>> + Send>, ErrorReply> {
    // A host that lasts as long as its command does not end while a conversation is followed.
    let attachment = api.attached.attach();
    let key = key(&access, agent, channel, peer)?;
    let follower = api.host.cognition.follow(key, seen).await?;
    let stream = stream::unfold((follower, attachment), |(mut follower, attachment)| async move {
        match follower.next().await {
            Ok(chat) => chat.map(|chat| (Ok(event(Some(chat.id), &chat)), (follower, attachment))),
            Err(refusal) => {
                tracing::warn!(%refusal, "a conversation cannot be read: the stream ends");
                None
            }
        }
    });
    Ok(EventStream::new(stream.take_until(api.closing.cancelled_owned())))
}

pub(super) async fn forget(
    _: Owner,
    State(api): State<ApiState>,
    Path(channel): Path<ChannelName>,
    Query(ConversationSide { agent, peer }): Query<ConversationSide>,
) -> ApiResult<ForgottenConversation> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.cognition.forget_conversation(&ConversationKey { agent, channel, peer }).await?))
}

/// The agent whose conversations they were.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ForgottenQuery {
    #[serde(default)]
    agent: AgentName,
}

pub(super) async fn forgotten(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Query(ForgottenQuery { agent }): Query<ForgottenQuery>,
) -> ApiResult<Vec<ForgottenConversation>> {
    access.check_agent(&agent)?;
    let mut notes = api.host.cognition.forgotten(&agent, MAX_LISTED_FORGOTTEN).map_err(Refusal::from)?;
    notes.retain(|note| !note.is_owner || access.sees_owner());
    Ok(Json(notes))
}

fn key(
    access: &Access,
    agent: AgentName,
    channel: ChannelName,
    peer: Option<PeerId>,
) -> Result<ConversationKey, ErrorReply> {
    access.check_agent(&agent)?;
    if peer.is_none() && !access.sees_owner() {
        let refusal = Refusal::new(RefusalCode::Forbidden, "conversations of the owner are not shown to an API token");
        return Err(refusal.with_remedy("name the peer of a conversation: `?peer=ID`").into());
    }
    Ok(ConversationKey { agent, channel, peer })
}
