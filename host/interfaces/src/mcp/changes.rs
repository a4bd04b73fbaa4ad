//! Tells a client when other skills are approved: their tools and files are lists that it may have read.

use std::time::Duration;

use base::ContentHash;
use rmcp::service::{Peer, RoleServer, SubscriptionSink};

use super::api::Api;
use crate::http::SkillsChanged;

/// Pause before a host is followed that ended its events or gave none.
const PAUSE: Duration = Duration::from_secs(1);

/// Where the notices go.
pub(super) enum Listener {
    /// A client with a handshake, which is told without asking.
    Session(Peer<RoleServer>),
    /// A client that asked by `subscriptions/listen`.
    Subscription(SubscriptionSink),
}

impl Listener {
    /// Whether the client is still there.
    async fn tell(&self) -> bool {
        match self {
            Self::Session(peer) => {
                peer.notify_tool_list_changed().await.is_ok() && peer.notify_resource_list_changed().await.is_ok()
            }
            Self::Subscription(sink) => {
                let accepted = sink.accepted();
                (accepted.tools_list_changed != Some(true) || sink.notify_tool_list_changed().await.is_ok())
                    && (accepted.resources_list_changed != Some(true)
                        || sink.notify_resource_list_changed().await.is_ok())
            }
        }
    }
}

/// Follows the approved skills until the client is gone, or the host that it came through ends.
pub(super) async fn follow(api: &Api, listener: &Listener) {
    let mut last: Option<ContentHash> = None;
    loop {
        match api.events("/v1/skills/events").await {
            Ok(mut events) => {
                while let Some(event) = events.next().await {
                    let Ok(SkillsChanged { digest }) = serde_json::from_str(&event.data) else { continue };
                    // The next host may know others than the last one did.
                    let is_other = last.replace(digest).is_some_and(|known| known != digest);
                    if is_other && !listener.tell().await {
                        return;
                    }
                }
            }
            Err(refusal) => tracing::debug!(%refusal, "skills are not followed"),
        }
        let Api::Home(home) = api else { return };
        tokio::time::sleep(PAUSE).await;
        if let Err(refusal) = home.reach_next().await {
            tracing::debug!(%refusal, "the home has no host");
        }
    }
}
