//! Conversations in which nothing is under way: only these are forgotten by the owner's command or by `[retention]`.

use base::{Refusal, RefusalCode, RunId, Timestamp};
use store::{Scan, StoreError, Table, blocking};

use crate::cognition::Cognition;
use crate::conversation::Conversation;
use crate::forget::ForgottenBy;
use crate::record::{
    ConversationId, ConversationKey, Entry, EntryBody, Head, entries_prefix, entry_key, names_prefix, outbox_key,
};

/// Names that are read at a time.
const PAGE: usize = 100;

/// A conversation in which nothing is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleConversation {
    /// The name of the conversation.
    pub key: ConversationKey,
    /// Time of its last event.
    pub at: Timestamp,
    /// Bytes of its entries.
    pub bytes: u64,
    last_event: u64,
    /// Runs and questions that its head names.
    runs: Vec<RunId>,
}

impl Cognition {
    /// The conversations of all agents with a past and nothing under way, the longest unused first.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn idle(&self) -> Result<Vec<IdleConversation>, Refusal> {
        let cognition = self.clone();
        let candidates = blocking(move || Ok(cognition.at_rest()?)).await?;
        let mut idle = Vec::new();
        for candidate in candidates {
            if self.open_run(&candidate.runs).await?.is_none() {
                idle.push(candidate);
            }
        }
        idle.sort_by_key(|conversation| conversation.at);
        Ok(idle)
    }

    /// Forgets an idle conversation, but not its memories. `false`: it is in use again, or gone.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn forget_idle(&self, idle: &IdleConversation) -> Result<bool, Refusal> {
        let last = idle.last_event;
        match self.forget_if(&idle.key, ForgottenBy::Retention, move |head| head.last() == last).await {
            Ok(_) => Ok(true),
            Err(refusal) if matches!(refusal.code, RefusalCode::NotFound | RefusalCode::IllegalState) => Ok(false),
            Err(refusal) => Err(refusal),
        }
    }

    /// Why a conversation cannot be forgotten now, with the remedy. `None`: nothing is under way in it.
    ///
    /// # Errors
    /// If the store fails.
    pub(crate) async fn under_way(&self, id: &str, head: &Head) -> Result<Option<Refusal>, Refusal> {
        if head.has_work() {
            return Ok(Some(refusal("a message or a signal in it has no answer yet", "wait for the answer")));
        }
        if self.owes_replies(id, head)? {
            let remedy =
                "serve its channel until the reply is delivered, or forget the peer with `motor ledger forget`";
            return Ok(Some(refusal("a reply to the peer is not delivered yet", remedy)));
        }
        self.open_run(&runs(head)).await
    }

    /// Why these runs keep their conversation. A run that was deleted does not.
    async fn open_run(&self, runs: &[RunId]) -> Result<Option<Refusal>, Refusal> {
        for run in runs {
            match self.inner.parts.hands.view(run).await {
                Ok(view) if view.is_over => {
                    let reason = format!("the end of the run `{run}` is not told in it yet");
                    return Ok(Some(refusal(&reason, "wait until `motor chat` tells it")));
                }
                Ok(_) => {
                    let reason = format!("the run `{run}` was delegated in it and is not over");
                    return Ok(Some(refusal(&reason, &format!("end it with `motor task cancel {run}`"))));
                }
                Err(refusal) if refusal.code == RefusalCode::NotFound => {}
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(None)
    }

    /// Whether the outbox of the channel has not claimed a reply yet.
    fn owes_replies(&self, id: &str, head: &Head) -> Result<bool, StoreError> {
        let store = &self.inner.parts.store;
        let claimed: Option<u64> = store.get(Table::Conversations, outbox_key(id))?;
        let is_served = || head.key.peer.is_some() && self.inner.outboxes.serve(&head.key.channel);
        if claimed.is_none() && !is_served() {
            return Ok(false);
        }
        let scan = Scan::prefix(entries_prefix(id)).after(entry_key(id, claimed.unwrap_or(0)));
        let left = store.scan::<Entry>(Table::Conversations, &scan)?;
        Ok(left.iter().any(|(_, entry)| matches!(entry.body, EntryBody::Said { .. })))
    }

    fn at_rest(&self) -> Result<Vec<IdleConversation>, StoreError> {
        let store = &self.inner.parts.store;
        let (mut found, mut scan) = (Vec::new(), Scan::prefix(names_prefix()).limit(PAGE));
        loop {
            let page = store.scan::<ConversationId>(Table::Conversations, &scan)?;
            let Some((last, _)) = page.last() else { return Ok(found) };
            scan = Scan::prefix(names_prefix()).limit(PAGE).after(last.clone());
            for (_, id) in page {
                let Some(head) = Conversation::stored_head(store, &id)? else { continue };
                let Some((at, bytes)) = head.extent.as_ref().and_then(|extent| Some((extent.at?, extent.bytes))) else {
                    continue;
                };
                if head.has_work() || self.owes_replies(&id, &head)? {
                    continue;
                }
                let (last_event, runs) = (head.last(), runs(&head));
                found.push(IdleConversation { key: head.key, at, bytes, last_event, runs });
            }
        }
    }
}

fn runs(head: &Head) -> Vec<RunId> {
    head.runs.iter().chain(head.questions.iter().map(|question| &question.run)).cloned().collect()
}

fn refusal(reason: &str, remedy: &str) -> Refusal {
    let reason = format!("the conversation is under way: {reason}");
    Refusal::new(RefusalCode::IllegalState, reason).with_remedy(remedy)
}
