//! Consent to requests: the questions to the owner, and the requests that they allowed one call (SPEC APPR-1).
//!
//! A lease names one request by its hash and is used up by the request that leaves. Survives a script that sends more than was
//! shown, sends it twice, or fills the question with requests.

use std::collections::BTreeMap;

use base::ContentHash;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::target::Scheme;
use crate::{BlockReason, Field, GivenValues, Nature, Pattern, Rule, Shape, Target, Unit};

/// Requests that one call can ask about; more are refused only.
const MAX_ASKED: usize = 16;
/// The name of the field that is a body without fields. Parameters of a query begin with `?`, headers end with `:`.
const WHOLE_BODY: &str = "body";
/// Bytes of a body that are shown.
const MAX_BODY_BYTES: usize = 4 << 10;
/// Characters of a URL that are shown.
const MAX_URL_CHARACTERS: usize = 2048;

/// Requests that the owner allowed for a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AllowedShape {
    /// The shape of the requests.
    pub shape: Shape,
    /// The hash of each field's value as it was shown. A request has to have the same fields, and each value has to be the
    /// shown one or the user's own. `None`: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<BTreeMap<String, u64>>,
    /// Whether only over TLS: a request shown as encrypted is not allowed in clear text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encrypted: bool,
}

impl AllowedShape {
    /// Whether it covers a request of a run that was given this.
    #[must_use]
    pub fn covers(&self, unit: &Unit, given: &GivenValues) -> bool {
        (!self.encrypted || unit.target.scheme() == Scheme::Https)
            && self.shape.covers(unit)
            && self.values.as_ref().is_none_or(|values| unit.has_shown(values, given))
    }
}

/// A request that was refused for want of the owner's consent, in a form to be shown. Without secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedRequest {
    /// The hash that a lease on it names.
    pub hash: ContentHash,
    /// The rule that refused it.
    pub rule: Rule,
    /// Why it needs consent, in one sentence.
    pub reason: String,
    /// The method of the request.
    pub method: String,
    /// The URL, with placeholders; at most 2,048 characters, and how many bytes it has if it is longer.
    pub url: String,
    /// The credentials that are put in, by name.
    pub credentials: Vec<String>,
    /// The class of similar requests.
    pub class: Shape,
    /// The fields of query, headers and body.
    pub fields: Vec<Field>,
    /// Bytes of the body, with placeholders in it.
    pub body_bytes: u64,
    /// The first 4 KiB of a body that is text and has no fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The requests that a consent for the run allows.
    pub allowed: AllowedShape,
}

impl AskedRequest {
    /// The request as it is shown. Its parts hold no secrets, or it would have no class.
    pub(crate) fn new(
        unit: &Unit,
        hash: ContentHash,
        blocked: &BlockReason,
        class: Shape,
        given: &GivenValues,
    ) -> Self {
        let fields = unit.fields(given);
        let is_in_body = |name: &str| !name.starts_with('?') && !name.ends_with(':') && name != WHOLE_BODY;
        let has_fields = fields.iter().any(|field| is_in_body(&field.name));
        // The shape of a read decides: the next read asks for another thing.
        let values = (unit.nature() == Nature::Write).then(|| unit.shown(given));
        let url = unit.target.to_string();
        Self {
            hash,
            rule: blocked.rule,
            reason: blocked.reason.clone(),
            method: unit.method.to_string(),
            url: match url.char_indices().nth(MAX_URL_CHARACTERS) {
                Some((end, _)) => format!("{}… ({} bytes)", url.get(..end).unwrap_or_default(), url.len()),
                None => url,
            },
            credentials: unit.credentials.iter().map(ToString::to_string).collect(),
            allowed: AllowedShape {
                shape: class.clone().at_port(unit.target.port()),
                values,
                encrypted: unit.target.scheme() == Scheme::Https,
            },
            class,
            fields,
            body_bytes: unit.body.len() as u64,
            body: if has_fields { None } else { text_of(&unit.body) },
        }
    }
}

/// The beginning of a body that is text.
fn text_of(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok().filter(|text| !text.is_empty())?;
    text.get(..text.floor_char_boundary(MAX_BODY_BYTES)).map(str::to_owned)
}

/// The owner's consents for one call, and the run's counts that the gate numbers its writes by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallConsents {
    /// The requests that may leave, each as often as it stands here.
    pub leases: Vec<ContentHash>,
    /// How often earlier calls of the run are known to have sent a request. Requests of an earlier attempt of this call do not
    /// count: the next attempt sends them with the same key.
    pub sent: BTreeMap<ContentHash, u32>,
    /// The run, for the keys of its writes; empty outside runs.
    pub run: String,
    /// Hosts that this call may read from in a run that asks before every request.
    pub reads: Vec<Pattern>,
    /// The idempotency key of the call's one write, if it has been given one before.
    pub key: Option<String>,
}

/// The consents of a call while it goes on.
#[derive(Debug, Default)]
pub(crate) struct Consents {
    run: String,
    reads: Vec<Pattern>,
    key: Option<String>,
    state: Mutex<ConsentBook>,
}

#[derive(Debug, Default)]
struct ConsentBook {
    leases: Vec<ContentHash>,
    sent: BTreeMap<ContentHash, u32>,
    asked: Vec<AskedRequest>,
    /// How often the call has had a write held, by hash.
    held: BTreeMap<ContentHash, u32>,
}

impl Consents {
    pub(crate) fn new(CallConsents { leases, sent, run, reads, key }: CallConsents) -> Self {
        let book = ConsentBook { leases, sent, asked: Vec::new(), held: BTreeMap::new() };
        Self { run, reads, key, state: Mutex::new(book) }
    }

    /// Whether the call may read from a host.
    pub(crate) fn may_read(&self, target: &Target) -> bool {
        self.reads.iter().any(|host| host.covers(target))
    }

    /// The key of a write that is held: the same if the call is made again, another for each of its equal writes.
    pub(crate) fn hold(&self, call: Option<&str>, hash: &ContentHash) -> String {
        let mut state = self.state.lock();
        let before = state.held.entry(*hash).or_default();
        let key = format!("{}-{}-{before}", call.unwrap_or(&self.run), hash.short());
        *before = before.saturating_add(1);
        key
    }

    /// Whether a lease on the request is left.
    pub(crate) fn allow(&self, hash: &ContentHash) -> bool {
        self.state.lock().leases.contains(hash)
    }

    /// Uses up a lease on the request. Whether there was one.
    pub(crate) fn use_up(&self, hash: &ContentHash) -> bool {
        let mut state = self.state.lock();
        let found = state.leases.iter().position(|lease| lease == hash);
        found.map(|position| state.leases.swap_remove(position)).is_some()
    }

    /// Notes a request that the owner has to be asked about.
    pub(crate) fn ask(&self, hash: &ContentHash, request: impl FnOnce() -> AskedRequest) {
        let mut state = self.state.lock();
        if state.asked.len() < MAX_ASKED && state.asked.iter().all(|asked| asked.hash != *hash) {
            state.asked.push(request());
        }
    }

    pub(crate) fn asked(&self) -> Vec<AskedRequest> {
        self.state.lock().asked.clone()
    }

    /// Notes that a request leaves, so there is nothing left to ask about it. The key that tells its doubles apart; none
    /// outside runs.
    pub(crate) fn leave(&self, hash: &ContentHash) -> Option<String> {
        let mut state = self.state.lock();
        state.asked.retain(|asked| asked.hash != *hash);
        if self.key.is_some() {
            return self.key.clone();
        }
        if self.run.is_empty() {
            return None;
        }
        let sent = state.sent.entry(*hash).or_default();
        let key = format!("{}-{}-{sent}", self.run, hash.short());
        *sent = sent.saturating_add(1);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};

    use super::*;

    fn unit(url: &str, body: &'static str) -> Unit {
        Unit::new(Method::POST, Target::parse(url).unwrap(), HeaderMap::new(), body.into())
    }

    fn asked(unit: &Unit) -> AskedRequest {
        let blocked =
            BlockReason { rule: Rule::TaintedWrite, asked: String::new(), reason: "why".into(), remedy: String::new() };
        AskedRequest::new(unit, unit.hash(), &blocked, unit.class().unwrap(), &GivenValues::default())
    }

    #[test]
    fn a_lease_is_for_one_request_that_leaves() {
        let [one, other] = [ContentHash::of(b"1"), ContentHash::of(b"2")];
        let consents = Consents::new(CallConsents { leases: vec![one, one, other], ..CallConsents::default() });
        assert!(consents.allow(&one) && consents.allow(&one), "looking uses nothing up");
        assert_eq!([(); 3].map(|()| consents.use_up(&one)), [true, true, false]);
        assert!(!consents.allow(&one) && consents.allow(&other));
        assert!(!consents.use_up(&ContentHash::of(b"3")));
    }

    #[test]
    fn the_list_is_bounded_and_has_each_request_once() {
        let consents = Consents::default();
        for number in 0..40 {
            let unit = unit(&format!("https://a.example/{}", number / 2), "");
            consents.ask(&unit.hash(), || asked(&unit));
        }
        let urls: Vec<String> = consents.asked().into_iter().map(|asked| asked.url).collect();
        let expected: Vec<String> = (0..MAX_ASKED).map(|number| format!("https://a.example/{number}")).collect();
        assert_eq!(urls, expected);
        consents.leave(&unit("https://a.example/3", "").hash());
        assert_eq!(consents.asked().len(), MAX_ASKED - 1, "what has left is not asked about");
    }

    #[test]
    fn keys_count_what_is_known_to_have_been_sent() {
        let [one, other] = [ContentHash::of(b"1"), ContentHash::of(b"2")];
        let sent = BTreeMap::from([(one, 3)]);
        let consents = Consents::new(CallConsents { sent, run: "run_a".into(), ..CallConsents::default() });
        let key = |hash: &ContentHash, count: u32| Some(format!("run_a-{}-{count}", hash.short()));
        assert_eq!([(); 2].map(|()| consents.leave(&one)), [key(&one, 3), key(&one, 4)]);
        assert_eq!(consents.leave(&other), key(&other, 0));
        assert_eq!(Consents::default().leave(&one), None);
    }

    #[test]
    fn what_is_shown_is_bounded_and_text() {
        let long = asked(&unit(&format!("https://a.example/{}", "p".repeat(5_000)), ""));
        assert_eq!(
            (long.url.chars().count(), long.body, long.body_bytes),
            (MAX_URL_CHARACTERS + "… (5018 bytes)".chars().count(), None, 0)
        );
        let body: &'static str = Box::leak("é".repeat(5_000).into_boxed_str());
        let shown = asked(&unit("https://a.example/", body));
        assert_eq!((shown.body.unwrap().len(), shown.body_bytes), (MAX_BODY_BYTES, 10_000));
        assert_eq!(text_of(b"\xff\xfe"), None);
    }

    #[test]
    fn a_request_reads_back_from_its_json() {
        let shown = asked(&unit("https://api.example.com/transfers?a=1", "pay bob"));
        let json = serde_json::to_value(&shown).unwrap();
        assert_eq!(json["class"], "POST api.example.com/transfers");
        assert_eq!(json["allowed"]["shape"], "POST api.example.com:443/transfers");
        // A request shown as encrypted is not allowed in clear text.
        assert_eq!(json["allowed"]["encrypted"], true);
        let clear = unit("http://api.example.com:443/transfers?a=1", "pay bob");
        let given = GivenValues::default();
        assert!(!AllowedShape { values: None, ..shown.allowed.clone() }.covers(&clear, &given));
        assert!(AllowedShape { values: None, encrypted: false, ..shown.allowed.clone() }.covers(&clear, &given));
        assert_eq!((&json["bodyBytes"], &json["body"]), (&serde_json::json!(7), &serde_json::json!("pay bob")));
        assert_eq!(serde_json::from_value::<AskedRequest>(json).unwrap(), shown);
    }
}
