//! The consultation before an answer of high stakes to a peer (SPEC CX-10): the model of the reflections, in a context of its own.

use std::sync::Arc;
use std::time::Duration;

use base::{AgentName, Refusal, RefusalCode};
use cognition::PeerAnswer;
use cortex::{ConsultationFacts, ReflectionModel, Verdict};
use ledger::PeerId;

use super::Reflections;
use super::model::CortexModel;

impl Reflections {
    /// The time of the consultation about an answer to a peer; `None` if it needs none.
    pub(crate) fn consultation(&self, agent: &AgentName, answer: PeerAnswer<'_>) -> Option<Duration> {
        self.0.settings.of(agent).consultation(answer.earlier, answer.message, answer.text)
    }

    /// Asks whether an answer to a peer may be sent. Its tokens are paid for as those of a cycle.
    ///
    /// # Errors
    /// If the model cannot be asked, or gives no verdict.
    pub(crate) async fn consult(
        &self,
        agent: &AgentName,
        peer: &PeerId,
        answer: PeerAnswer<'_>,
    ) -> Result<bool, Refusal> {
        let cortex = self.read(agent)?;
        let beliefs = cortex.beliefs().into_iter().filter(|belief| belief.peer.as_ref() == Some(peer));
        let record = self.0.ledger.report(agent, peer).map(|report| report.prompt).unwrap_or_default();
        let facts = ConsultationFacts {
            earlier: answer.earlier.to_vec(),
            message: answer.message,
            answer: answer.text,
            peer: &record,
            beliefs: beliefs.map(|belief| format!("{}: {}", belief.key, belief.value)).collect(),
            soul: self.soul(agent).await.unwrap_or_default(),
        };
        let config = Arc::new(self.0.settings.of(agent));
        let model = CortexModel { reflections: self.clone(), agent: agent.clone(), config };
        let reply = model.ask(facts.prompt()).await?;
        let Some(Verdict { sends, reason }) = Verdict::read(&reply.text) else {
            return Err(Refusal::new(RefusalCode::ModelUnavailable, "the reply is not a verdict"));
        };
        let (input, output) = (reply.input_tokens, reply.output_tokens);
        tracing::info!(%agent, %peer, sends, reason, ?input, ?output, "an answer to a peer was considered");
        Ok(sends)
    }
}
