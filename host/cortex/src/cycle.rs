//! One cycle (SPEC CX-3 to CX-6, CX-8): gather, ask, read, weigh, apply, in this order. One at a time.
//!
//! A cycle runs in its own task, so a caller that goes away does not cut it in the middle. Until the one commit nothing has changed,
//! in the store or in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::text::Foreign;
use base::{Refusal, RefusalCode, Timestamp};
use ledger::{PeerId, PeerIncarnation, PeerReport, TrustChange};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Batch, broke_off};

use crate::activity::{Activity, Observed};
use crate::belief::BeliefChange;
use crate::config::CortexConfig;
use crate::cortex::{Cortex, CortexInner};
use crate::directive::{Directive, DirectiveSet};
use crate::guidance;
use crate::notice::{self, CortexNotice};
use crate::record::{AssessedPeer, CycleOutcome, ReflectionRecord, SkipCode, TokenUse, UsedReflector};
use crate::reflector::{MAX_SYSTEM_TOKENS, Proposals, ReflectionModel, Reflector, ReflectorError, estimated_tokens};
use crate::state::{CortexState, stage_record};
use crate::summary::{BeliefBrief, CycleSummaries, InteractionBrief, PeerBrief};
use crate::triage::skip_reason;
use crate::trigger::Trigger;
use crate::weigh::{Weighed, weigh};

/// Bytes of a model's reply.
const MAX_REPLY_BYTES: usize = 256 << 10;
/// Characters of the reason of a skipped cycle.
const MAX_REASON: usize = 300;

/// The result of asking for a cycle.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one for each cycle, and mostly the large one")]
pub enum ReflectOutcome {
    /// The cortex is off.
    Off,
    /// A cycle is under way: this one is skipped.
    AlreadyReflecting,
    /// A cycle took place and is recorded.
    Done {
        /// The record in the history.
        record: ReflectionRecord,
        /// The events `cortex.after_assess`, one for each recorded assessment.
        assessed: Vec<AfterAssess>,
        /// The event `cortex.after_reflect`, if its proposals were applied.
        reflected: Option<AfterReflect>,
    },
}

/// The event `cortex.after_assess`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AfterAssess {
    /// The peer in the ledger.
    #[serde(alias = "peer_id")]
    pub peer_id: PeerId,
    /// The trust after the clamp.
    pub trust: i8,
    /// The rationale as it was recorded.
    pub rationale: String,
    /// The information score, computed by the ledger.
    #[serde(alias = "info_score")]
    pub info_score: u8,
    /// The number of the cycle.
    pub cycle: u64,
}

/// The event `cortex.after_reflect`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AfterReflect {
    /// The number of the cycle.
    pub cycle: u64,
    /// The reasons for the cycle, joined by `+`.
    pub trigger: String,
    /// The peers that were assessed.
    #[serde(alias = "peers_assessed")]
    pub peers_assessed: Vec<PeerId>,
    /// Keys of new and of revised beliefs.
    #[serde(alias = "beliefs_added")]
    pub beliefs_added: Vec<String>,
    /// Keys of beliefs that go on.
    #[serde(alias = "beliefs_reaffirmed")]
    pub beliefs_reaffirmed: Vec<String>,
    /// Keys of beliefs that ended.
    #[serde(alias = "beliefs_expired")]
    pub beliefs_expired: Vec<String>,
    /// Keys of directives that were given.
    #[serde(default)]
    #[serde(alias = "directives_issued")]
    pub directives_issued: Vec<String>,
    /// The model's own summary.
    pub summary: String,
    /// Seconds that the cycle took.
    #[serde(alias = "elapsed_seconds")]
    pub elapsed_seconds: f64,
}

/// The facts of a cycle under way.
struct CycleFacts {
    config: Arc<CortexConfig>,
    summaries: CycleSummaries,
    /// The peers with activity that were not shown.
    left: Vec<(PeerId, u64)>,
    shown: BTreeSet<PeerId>,
    /// The peers that it has texts about, as the ledger knew them before the texts were read. Nothing of the cycle is about another peer
    /// of the same id.
    known: BTreeMap<PeerId, Option<PeerIncarnation>>,
    reflector: Option<UsedReflector>,
    tokens: TokenUse,
    began: std::time::Duration,
    /// Why the triage skips the cycle, if it does.
    triaged: Option<String>,
}

impl Cortex {
    /// Runs one cycle: a model call within the limits, and its consequences as one commit. Failures of the reflector and the
    /// model are skipped cycles.
    ///
    /// # Errors
    /// If the store fails: nothing of the cycle is applied.
    pub async fn reflect(
        &self,
        triggers: Vec<Trigger>,
        reflector: Arc<dyn Reflector>,
        model: Arc<dyn ReflectionModel>,
    ) -> Result<ReflectOutcome, Refusal> {
        let config = self.config();
        if !config.enabled {
            return Ok(ReflectOutcome::Off);
        }
        let Ok(turn) = Arc::clone(&self.inner.reflecting).try_lock_owned() else {
            tracing::debug!(agent = %self.inner.agent, ?triggers, "trigger skipped: a reflection is under way");
            return Ok(ReflectOutcome::AlreadyReflecting);
        };
        let inner = Arc::clone(&self.inner);
        let cycle = tokio::spawn(async move {
            let _turn = turn;
            inner.cycle(config, triggers, &*reflector, &*model).await
        });
        cycle.await.unwrap_or_else(|error| Err(broke_off(&error)))
    }
}

impl CortexInner {
    async fn cycle(
        &self,
        config: Arc<CortexConfig>,
        triggers: Vec<Trigger>,
        reflector: &dyn Reflector,
        model: &dyn ReflectionModel,
    ) -> Result<ReflectOutcome, Refusal> {
        let began = self.clock.monotonic();
        *self.last_cycle.lock() = began;
        let observed = self.activity.take();
        let peers = observed.peers.clone();
        let result = async {
            let mut facts = self.gather(config, triggers, observed, began)?;
            if Arc::strong_count(&self.forgetting) > 1 {
                return self.skip(&facts, SkipCode::PeerForgotten, "a peer was being forgotten").await;
            }
            if let Some(reason) = facts.triaged.clone() {
                return self.skip(&facts, SkipCode::Triaged, &reason).await;
            }
            let proposed = propose(&mut facts, reflector, model).await;
            facts.reflector = Some(reflector.used());
            match proposed {
                Ok(proposals) => self.apply(&facts, proposals).await,
                Err(error) => self.skip(&facts, error.code, &error.reason).await,
            }
        };
        let result: Result<ReflectOutcome, Refusal> = result.await;
        if !matches!(&result, Ok(ReflectOutcome::Done { reflected: Some(_), .. })) {
            // For the next cycle, which new activity begins.
            self.activity.give_back(peers);
        }
        result
    }

    /// Reads the summaries of the cycle, within the configured number of peers and tokens.
    fn gather(
        &self,
        config: Arc<CortexConfig>,
        triggers: Vec<Trigger>,
        observed: Observed,
        began: std::time::Duration,
    ) -> Result<CycleFacts, Refusal> {
        let now = self.clock.now();
        let Observed { activity, peers } = observed;
        let mut peers: Vec<(PeerId, u64)> = peers.into_iter().collect();
        // Stable: of equally busy ones, in the order of their ids.
        peers.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let state = self.state.read();
        let belief = |belief: &crate::Belief| BeliefBrief {
            key: belief.key.clone(),
            value: belief.value.clone(),
            peer: belief.peer.clone(),
        };
        let mut summaries = CycleSummaries {
            agent: self.agent.clone(),
            cycle: state.cycle.saturating_add(1),
            now,
            triggers,
            activity,
            peers: Vec::new(),
            omitted_peers: 0,
            beliefs: state.beliefs.active(now, config.belief_ttl()).map(belief).collect(),
            previous_summary: state.summary.clone(),
            commitments: state.commitments.briefs(),
            directives: state
                .directives
                .active(now, config.directive_ttl(), config.max_directives)
                .into_iter()
                .map(|directive| (directive.key.clone(), directive.text.clone()))
                .collect(),
            soul: self.soul.lock().clone().filter(|_| config.soul),
        };
        let beliefs = state.beliefs.clone();
        let named: BTreeSet<PeerId> = state.peers().cloned().collect();
        drop(state);
        let mut known = BTreeMap::new();
        for peer in named {
            let incarnation = self.ledger.incarnation(&self.agent, &peer)?;
            known.insert(peer, incarnation);
        }
        bound_advice(&mut summaries, &peers, &config);
        let interactions = peers.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        let taken = MAX_SYSTEM_TOKENS.saturating_add(json_tokens(&summaries)).saturating_add(MAX_SYSTEM_TOKENS / 5);
        let mut room = config.max_context_tokens.saturating_sub(taken);
        let mut left = Vec::new();
        for (peer, count) in peers {
            if summaries.peers.len() >= config.max_peers {
                left.push((peer, count));
                continue;
            }
            // Before the texts, so that they are not of an earlier one.
            let incarnation = self.ledger.incarnation(&self.agent, &peer)?;
            // A peer that was forgotten meanwhile is left out.
            let Some(report) = self.ledger.brief(&self.agent, &peer, config.context_window)? else { continue };
            match fitted(brief(report), room) {
                Some((brief, tokens)) => {
                    room = room.saturating_sub(tokens);
                    known.entry(peer).or_insert(incarnation);
                    summaries.peers.push(brief);
                }
                None => left.push((peer, count)),
            }
        }
        summaries.omitted_peers = u64::try_from(left.len()).unwrap_or(u64::MAX);
        let shown = summaries.peers.iter().map(|brief| brief.peer.clone()).collect();
        let (reflector, tokens) = (None, TokenUse::default());
        let triaged = skip_reason(&summaries, interactions, &beliefs, (&config, now));
        Ok(CycleFacts { config, summaries, left, shown, known, reflector, tokens, began, triaged })
    }

    /// Applies the proposals within the limits, as one commit with the record.
    async fn apply(&self, facts: &CycleFacts, proposals: Proposals) -> Result<ReflectOutcome, Refusal> {
        let (config, cycle, now) = (&facts.config, facts.summaries.cycle, self.clock.now());
        // Switched off meanwhile: the owner assesses now.
        if !self.config.lock().enabled {
            return self.skip(facts, SkipCode::SwitchedOff, "the cortex was switched off").await;
        }
        let mut state = self.state.read().clone();
        let mut expired = state.beliefs.expire(now, config.belief_ttl());
        let weighed = match weigh(proposals, &facts.shown, &state.beliefs, config.max_trust_delta) {
            Ok(weighed) => weighed,
            Err(reason) => return self.skip(facts, SkipCode::ProposalsInvalid, &reason).await,
        };
        let Weighed { assessments, claims, summary, guidance, mut refused } = weighed;
        let (mut added, mut reaffirmed, mut revised) = (Vec::new(), Vec::new(), Vec::new());
        for claim in claims {
            let key = claim.key.clone();
            match state.beliefs.apply(claim, now, cycle) {
                Ok(BeliefChange::Added) => added.push(key),
                Ok(BeliefChange::Reaffirmed) => reaffirmed.push(key),
                Ok(BeliefChange::Revised) => revised.push(key),
                Err(reason) => refused.push(format!("belief `{key}`: {reason}")),
            }
        }
        expired.extend(state.beliefs.evict(config.max_beliefs));
        let earlier = state.directives.clone();
        let guidance = guidance::apply(&mut state, guidance, &facts.summaries, (config, now), &mut refused);
        let news = new_directives(&state, &earlier, facts, now);
        state.cycle = cycle;
        state.unreflected.clear();
        state.summary = Some(summary.clone()).filter(|summary| !summary.is_empty());
        let proposed: Vec<i8> = assessments
            .iter()
            .map(|assessment| match assessment.trust {
                TrustChange::Toward { trust, .. } => trust,
                TrustChange::Set(_) => 0,
            })
            .collect();
        let mut batch = Batch::new();
        // From here to the commit no peer of the cycle can be forgotten. If one was forgotten before, nothing applies, also if a peer of the
        // same id has come since.
        let staging = self.ledger.stage_assessments_if(&mut batch, &self.agent, assessments, &facts.known);
        let staged = match staging.await {
            Ok(staged) => staged,
            Err(refusal) if refusal.code == RefusalCode::NotFound => {
                return self.skip(facts, SkipCode::PeerForgotten, &refusal.reason).await;
            }
            Err(refusal) => return Err(refusal),
        };
        let assessed = staged.assessments().iter().zip(proposed).map(|((peer, assessment), proposed)| AssessedPeer {
            peer: peer.clone(),
            proposed,
            trust: assessment.trust,
            info_score: assessment.info_score,
        });
        let outcome = CycleOutcome::Applied {
            assessed: assessed.collect(),
            beliefs_added: added.clone(),
            beliefs_reaffirmed: reaffirmed.clone(),
            beliefs_revised: revised.clone(),
            beliefs_expired: expired.clone(),
            refused,
            summary: summary.clone(),
            guidance: guidance.clone(),
        };
        let record = self.record(facts, outcome);
        if let Some(finding) = guidance.drift.clone() {
            let notice = CortexNotice::SoulDrift { finding, cycle };
            notice::stage(&mut batch, &self.agent, &mut state.signals, now, notice)?;
        }
        for notice in news {
            notice::stage(&mut batch, &self.agent, &mut state.signals, now, notice)?;
        }
        state.stage(&mut batch, &self.agent)?;
        stage_record(&mut batch, &self.store, &self.agent, &record, config.history)?;
        let recorded = self.ledger.commit(batch, staged).await?;
        *self.state.write() = state;
        self.activity.give_back(facts.left.iter().cloned());
        tracing::info!(agent = %self.agent, cycle, assessed = recorded.len(), "a reflection was applied");
        added.extend(revised);
        let reflected = AfterReflect {
            cycle,
            trigger: facts.summaries.triggers.iter().map(|trigger| trigger.as_str()).collect::<Vec<_>>().join("+"),
            peers_assessed: recorded.iter().map(|(peer, _)| peer.clone()).collect(),
            beliefs_added: added,
            beliefs_reaffirmed: reaffirmed,
            beliefs_expired: expired,
            directives_issued: guidance.directives,
            summary,
            elapsed_seconds: self.clock.monotonic().saturating_sub(facts.began).as_secs_f64(),
        };
        let event = |(peer_id, assessment): (PeerId, ledger::Assessment)| AfterAssess {
            peer_id,
            trust: assessment.trust,
            rationale: assessment.rationale,
            info_score: assessment.info_score,
            cycle,
        };
        let assessed = recorded.into_iter().map(event).collect();
        Ok(ReflectOutcome::Done { record, assessed, reflected: Some(reflected) })
    }

    /// Records a cycle of which nothing applies. The beliefs stay as they are.
    async fn skip(&self, facts: &CycleFacts, code: SkipCode, reason: &str) -> Result<ReflectOutcome, Refusal> {
        let reason = Foreign(reason).line(MAX_REASON);
        if code == SkipCode::Triaged {
            tracing::debug!(agent = %self.agent, cycle = facts.summaries.cycle, %reason, "a cycle needs no reflection");
        } else {
            tracing::warn!(agent = %self.agent, cycle = facts.summaries.cycle, code = code.as_str(), %reason, "a reflection was skipped");
        }
        let record = self.record(facts, CycleOutcome::Skipped { code, reason });
        let mut state = self.state.read().clone();
        state.cycle = record.cycle;
        let mut batch = Batch::new();
        state.stage(&mut batch, &self.agent)?;
        stage_record(&mut batch, &self.store, &self.agent, &record, facts.config.history)?;
        self.store.commit(batch).await?;
        *self.state.write() = state;
        Ok(ReflectOutcome::Done { record, assessed: Vec::new(), reflected: None })
    }

    fn record(&self, facts: &CycleFacts, outcome: CycleOutcome) -> ReflectionRecord {
        let CycleFacts { summaries, reflector, tokens, began, .. } = facts;
        let elapsed = self.clock.monotonic().saturating_sub(*began);
        ReflectionRecord {
            cycle: summaries.cycle,
            triggers: summaries.triggers.clone(),
            started_at: Timestamp::from_millis(summaries.now.as_millis()),
            duration_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            activity: summaries.activity,
            peers_shown: u64::try_from(summaries.peers.len()).unwrap_or(u64::MAX),
            reflector: reflector.clone(),
            tokens: *tokens,
            outcome,
        }
    }
}

/// Asks the reflector and the model, within the configured time and size.
///
/// # Errors
/// With the reason to skip the cycle.
async fn propose(
    facts: &mut CycleFacts,
    reflector: &dyn Reflector,
    model: &dyn ReflectionModel,
) -> Result<Proposals, ReflectorError> {
    let CycleFacts { config, summaries, tokens, .. } = facts;
    let asking = async {
        let prompt = reflector.prompt(summaries).await.map_err(|error| {
            ReflectorError::new(error.code, format!("the reflector built no prompt: {}", error.reason))
        })?;
        let estimated = prompt.system_tokens()?.saturating_add(estimated_tokens(&prompt.user));
        if estimated > config.max_context_tokens {
            let reason = format!("the prompt has {estimated} tokens, at most {}", config.max_context_tokens);
            return Err(ReflectorError::new(SkipCode::PromptInvalid, reason));
        }
        tokens.estimated_input = estimated;
        let reply = model.ask(prompt).await.map_err(|refusal| {
            let reason = format!("the model did not answer: {}", refusal.reason);
            ReflectorError::new(SkipCode::ModelUnavailable, reason)
        })?;
        (tokens.input, tokens.output) = (reply.input_tokens, reply.output_tokens);
        if reply.text.len() > MAX_REPLY_BYTES {
            let reason = format!("the reply has {} bytes, at most {MAX_REPLY_BYTES}", reply.text.len());
            return Err(ReflectorError::new(SkipCode::ReplyTooLong, reason));
        }
        reflector.proposals(&reply.text).await
    };
    match tokio::time::timeout(config.timeout(), asking).await {
        Ok(proposed) => proposed,
        Err(_) => {
            let reason = format!("it took more than {} s", config.reflection_timeout_seconds);
            Err(ReflectorError::new(SkipCode::Timeout, reason))
        }
    }
}

/// The directives of a cycle that are new. One that is only put in other words is not: a model words the same advice anew in each cycle. None
/// if neither a peer nor a commitment nor the owner gave a reason for it: the acts of the agent that follow from a directive lead to no
/// further one. A peer that a skipped cycle gave back is a reason, although its messages are counted no more.
fn new_directives(
    state: &CortexState,
    earlier: &DirectiveSet,
    CycleFacts { config, summaries, shown, .. }: &CycleFacts,
    now: Timestamp,
) -> Vec<CortexNotice> {
    let Activity { interactions, overdue, .. } = summaries.activity;
    if interactions == 0 && overdue == 0 && shown.is_empty() && !summaries.triggers.contains(&Trigger::Owner) {
        return Vec::new();
    }
    let active = |set: &DirectiveSet| -> Vec<Directive> {
        set.active(now, config.directive_ttl(), config.max_directives).into_iter().cloned().collect()
    };
    let known = active(earlier);
    let is_new = |directive: &Directive| {
        directive.cycle == summaries.cycle && !known.iter().any(|known| known.key == directive.key)
    };
    let notice = |Directive { key, text, peer, cycle, .. }| CortexNotice::Directive { key, peer, text, cycle };
    active(&state.directives).into_iter().filter(is_new).map(notice).collect()
}

/// Leaves out commitments and directives beyond a quarter of the prompt, so that there is room for peers. Those of peers with activity
/// come first.
fn bound_advice(summaries: &mut CycleSummaries, active: &[(PeerId, u64)], config: &CortexConfig) {
    let mut room = config.max_context_tokens / 4;
    let mut takes = |tokens: u64| {
        room = room.saturating_sub(tokens);
        room > 0
    };
    let likely: BTreeSet<&PeerId> = active.iter().take(config.max_peers).map(|(peer, _)| peer).collect();
    summaries.commitments.sort_by_key(|brief| !likely.contains(&brief.peer));
    summaries.commitments.retain(|brief| takes(json_tokens(brief)));
    summaries.directives.retain(|directive| takes(json_tokens(directive)));
}

fn brief(report: PeerReport) -> PeerBrief {
    let PeerReport { summary, trajectory, recent_assessments, recent_interactions, .. } = report;
    let interaction = |entry: ledger::Interaction| InteractionBrief {
        at: entry.at,
        direction: entry.direction,
        channel: entry.channel,
        summary: entry.summary,
    };
    PeerBrief {
        peer: summary.peer,
        first_seen_at: summary.first_seen_at,
        last_seen_at: summary.last_seen_at,
        incoming: summary.incoming,
        outgoing: summary.outgoing,
        info_score: summary.info_score,
        trust: summary.trust,
        rationale: recent_assessments.into_iter().next().map(|assessment| assessment.rationale),
        trajectory,
        interactions: recent_interactions.into_iter().rev().map(interaction).collect(),
    }
}

/// The brief with its tokens, without its oldest interactions if it is too long; `None` if even that does not fit.
fn fitted(mut brief: PeerBrief, room: u64) -> Option<(PeerBrief, u64)> {
    let mut tokens = json_tokens(&brief);
    let mut dropped = 0;
    for interaction in &brief.interactions {
        if tokens <= room {
            break;
        }
        tokens = tokens.saturating_sub(json_tokens(interaction));
        dropped += 1;
    }
    brief.interactions.drain(..dropped);
    // Each estimate is rounded up, so the sum of the rest is measured again.
    let tokens = json_tokens(&brief);
    (tokens <= room).then_some((brief, tokens))
}

fn json_tokens(value: &impl Serialize) -> u64 {
    serde_json::to_string(value).map_or(u64::MAX, |text| estimated_tokens(&text))
}
