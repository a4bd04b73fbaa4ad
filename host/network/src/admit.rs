//! Whether a request may leave: by name, and by the owner's consent, as things are when it is asked.
//!
//! It is asked before the look-up, before the connection and before the first byte, because a run reads, and its policy changes,
//! while its requests are under way. Only the last pass uses up a lease and counts carried data.

use std::sync::Arc;

use base::{ContentHash, CredentialName};
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method};
use vault::Scrubber;

use crate::carried::CarriedData;
use crate::consent::Consents;
use crate::leak::{self, LARGE_BYTES};
use crate::run::RunNetwork;
use crate::stage::not_staged;
use crate::substitute::RequestParts;
use crate::target::{Target, encoded};
use crate::values::CarriedBytes;
use crate::{AskedRequest, BlockReason, Grant, HeldWrite, Nature, Needed, Policy, Rule, Seen, TaintedWrite, Unit};

/// A request at the gate.
pub(crate) struct RequestAdmission<'a> {
    run: &'a RunNetwork,
    consents: &'a Consents,
    pub(crate) unit: Unit,
    pub(crate) hash: ContentHash,
}

/// A request that leaves now.
pub(crate) struct Pass {
    /// Whether it used up a lease.
    pub(crate) consented: bool,
    /// The idempotency key; only for writes of a run.
    pub(crate) key: Option<String>,
}

/// The credentials of a request.
pub(crate) struct Credentials<'a> {
    /// Those that are put in.
    pub(crate) names: &'a [CredentialName],
    /// Whether it holds the value of one already.
    pub(crate) holds_value: bool,
}

impl<'a> RequestAdmission<'a> {
    pub(crate) async fn new(
        run: &'a RunNetwork,
        consents: &'a Consents,
        method: &Method,
        target: &Target,
        parts: &RequestParts,
        credentials: Credentials<'_>,
    ) -> Result<Self, BlockReason> {
        let secrets = run.secrets();
        let (mut shown, mut target, mut is_showable) = (parts.clone(), target.clone(), true);
        if credentials.holds_value {
            shown = without_values(shown, secrets.scrubber());
            target = target.with_path(shown.path.clone());
            is_showable = leak::check(method, &shown, secrets, &target).await?.is_empty();
        }
        let granted = if secrets.was_computed_with() { secrets.granted() } else { &[] };
        let unit = Unit {
            method: method.clone(),
            target,
            headers: shown.headers,
            body: shown.body,
            credentials: credentials.names.iter().cloned().collect(),
            computed_with: granted.iter().map(|granted| granted.name.clone()).collect(),
            is_showable,
        };
        let hash = hash_of(&unit).await;
        Ok(Self { run, consents, unit, hash })
    }

    /// The request in the form in which it is held in place of being sent. `call` is the key of its call; `is_exact`: whether
    /// placeholders in that form become the same bytes. No consent is needed, but a write that may never be sent is refused
    /// at once.
    ///
    /// # Errors
    /// If a rule refuses it that the owner's later consent does not satisfy, or it cannot be held.
    pub(crate) fn held(&self, call: Option<&str>, is_exact: impl FnOnce() -> bool) -> Result<HeldWrite, BlockReason> {
        let policy = self.run.policy();
        policy.decide(&self.unit.target)?;
        let sources = self.run.taint().sources();
        policy.decide_held(&self.unit, &Seen { sources: &sources, given: self.run.given(), excess: None })?;
        if !self.unit.is_showable || !is_exact() {
            let reason = "it holds the value of a credential in a form that no placeholder can stand for".to_owned();
            return Err(not_staged(&self.unit, reason, "write the credential as its placeholder".to_owned()));
        }
        let key = self.consents.hold(call, &self.hash);
        HeldWrite::of(&self.unit, self.hash, key, &sources)
    }

    /// Checks policy, taint and consent as they are now.
    pub(crate) fn check(&self) -> Result<Arc<Policy>, BlockReason> {
        let decision = self.decide(&self.run.carried())?;
        match decision.needed {
            Some(needed) if needed.class.is_none() || !self.consents.allow(&self.hash) => Err(self.refused(*needed)),
            _ => Ok(decision.policy),
        }
    }

    /// The same for the last time: the request leaves.
    pub(crate) fn pass(&self) -> Result<Pass, BlockReason> {
        // Locked until it is counted: of two reads that fit one by one only one may leave.
        let mut carried = self.run.carried();
        let decision = self.decide(&carried)?;
        let consented = decision.needed.is_some();
        if let Some(needed) = decision.needed {
            // A consent of before does not outweigh a refusal that the owner cannot be asked about.
            if needed.class.is_none() || !self.consents.use_up(&self.hash) {
                return Err(self.refused(*needed));
            }
        } else if decision.carried.run > 0 && !decision.policy.lets_data_out(&self.unit, self.run.given()) {
            carried.add(&self.unit.target, decision.grant, decision.carried.run);
        }
        let key = self.consents.leave(&self.hash).filter(|_| self.unit.nature() == Nature::Write);
        Ok(Pass { consented, key })
    }

    fn decide(&self, carried: &CarriedData) -> Result<AdmissionDecision, BlockReason> {
        let (run, unit) = (self.run, &self.unit);
        let policy = run.policy();
        let grant = policy.decide(&unit.target)?;
        let sources = run.taint().sources();
        let is_bounded =
            !sources.is_empty() && policy.tainted_write != TaintedWrite::Allow && unit.nature() != Nature::Write;
        let open = || (grant == Grant::Wide).then(|| policy.fixed_end(&unit.target));
        let bytes = if is_bounded { unit.carried(open(), run.given()) } else { CarriedBytes::default() };
        let excess = carried.excess(&unit.target, grant, bytes, run.gate().bounds());
        let seen = Seen { sources: &sources, given: run.given(), excess };
        let is_read = |needed: &Needed| {
            let is_plain = needed.blocked.rule == Rule::ConsentNeeded && unit.nature() == Nature::Read;
            is_plain && self.consents.may_read(&unit.target)
        };
        let needed = policy.decide_unit(unit, &seen).err().filter(|needed| !is_read(needed));
        Ok(AdmissionDecision { policy, grant, carried: bytes, needed })
    }

    /// Hands out a request that the owner can be asked about.
    fn refused(&self, needed: Needed) -> BlockReason {
        let Needed { blocked, class } = needed;
        if let Some(class) = class {
            let request = || AskedRequest::new(&self.unit, self.hash, &blocked, class, self.run.given());
            self.consents.ask(&self.hash, request);
        }
        blocked
    }
}

struct AdmissionDecision {
    policy: Arc<Policy>,
    grant: Grant,
    /// Bytes that a read carries; none when they are not bounded.
    carried: CarriedBytes,
    needed: Option<Box<Needed>>,
}

/// Large bodies are hashed where they keep nothing else waiting.
async fn hash_of(unit: &Unit) -> ContentHash {
    if unit.body.len() >= LARGE_BYTES {
        let unit = unit.clone();
        if let Ok(hash) = tokio::task::spawn_blocking(move || unit.hash()).await {
            return hash;
        }
    }
    unit.hash()
}

/// The parts with placeholders for values that did not come by one: neither hash nor question may hold a secret.
fn without_values(parts: RequestParts, scrubber: &Scrubber) -> RequestParts {
    let path = encoded(&scrubber.text(parts.path.to_string()));
    let mut headers = HeaderMap::with_capacity(parts.headers.len());
    for (name, value) in &parts.headers {
        let scrubbed = HeaderValue::from_bytes(&scrubber.bytes(value.as_bytes().to_vec()));
        headers.append(name.clone(), scrubbed.unwrap_or_else(|_| value.clone()));
    }
    let body = Bytes::from(scrubber.bytes(parts.body.to_vec()));
    RequestParts { path: PathAndQuery::try_from(path).unwrap_or(parts.path), headers, body }
}
