//! The network gate against real servers (SPEC NET-1 to NET-4, VAULT-3, TAINT-1): refused requests reach no server,
//! allowed ones arrive, and no server can make it otherwise.
//!
//! The guard on addresses is on in every test. Sites reached on this machine are on the owner's list of private
//! addresses; public addresses are tried in a network namespace of the test's own.

mod addresses;
mod names;
mod policy;
mod redirects;
mod responses;
mod secrets;
mod tls;
mod urls;
mod writes;

use std::sync::Arc;

use base::{CredentialName, Secret};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use network::{
    CallLimits, CallNetwork, Gate, GateError, NetworkConfig, Pattern, Policy, RunNetwork, Taint, TaintedWrite, Target,
    Timeouts,
};
use tests::MAX_WAIT;
use tests::network::{Dns, Site};
use vault::{GrantedCredential, RunSecrets, Scrubber};

/// How a run may get out: nothing, until it is said.
struct Way {
    config: NetworkConfig,
    policy: Policy,
    credentials: Vec<(String, String, Vec<String>)>,
    taint: Taint,
    limits: CallLimits,
}

impl Way {
    /// A way to these domains.
    fn to<D: AsRef<str>>(domains: &[D]) -> Self {
        let policy = Policy { domains: patterns(domains), tainted_write: TaintedWrite::Allow, ..Policy::default() };
        Self {
            config: NetworkConfig::default(),
            policy,
            credentials: Vec::new(),
            taint: Taint::default(),
            limits: CallLimits {
                requests: 1_000,
                request_bytes: 1 << 20,
                response_bytes: 4 << 20,
                idempotency_key: None,
            },
        }
    }

    /// To a site of this machine, by its address.
    fn to_site(site: &Site) -> Self {
        Self::to(&[site.address().to_string()]).private(site)
    }

    /// Puts the address of a site on the owner's list.
    fn private(mut self, site: &Site) -> Self {
        self.config.private.push(site.address().to_string());
        self
    }

    /// Opens the address of a site to names that lead there: on the owner's list, and granted beside them.
    fn opening(mut self, site: &Site) -> Self {
        self.policy.domains.extend(patterns(&[site.address().to_string()]));
        self.private(site)
    }

    /// The rule for writes after something has been read; elsewhere they pass, to be no concern of a test.
    fn tainted_write(mut self, rule: TaintedWrite) -> Self {
        self.policy.tainted_write = rule;
        self
    }

    /// Names are looked up there.
    fn resolver(mut self, dns: &Dns) -> Self {
        self.config.resolver = Some(dns.address());
        self
    }

    /// The run has a credential, for these domains.
    fn credential<D: AsRef<str>>(mut self, name: &str, value: &str, domains: &[D]) -> Self {
        let domains = domains.iter().map(|domain| domain.as_ref().to_owned()).collect();
        self.credentials.push((name.to_owned(), value.to_owned(), domains));
        self
    }

    fn gate(&self) -> Gate {
        Gate::new(&self.config).unwrap()
    }

    fn run(self) -> RunNetwork {
        let name = |name: &str| CredentialName::parse(name).unwrap();
        let secrets = self.credentials.iter().map(|(known, value, _)| (name(known), Secret::new(value.clone())));
        let scrubber = Arc::new(Scrubber::new(secrets.collect()));
        let granted = self.credentials.iter().map(|(known, value, domains)| GrantedCredential {
            name: name(known),
            value: Secret::new(value.clone()),
            domains: domains.clone(),
            raw: false,
        });
        let secrets = Arc::new(RunSecrets::new(granted.collect(), scrubber));
        self.gate().run(self.policy, secrets, self.taint)
    }

    /// Opens it for one call.
    fn open(self) -> CallNetwork {
        let limits = self.limits.clone();
        self.run().call(limits)
    }
}

fn patterns<D: AsRef<str>>(patterns: &[D]) -> Vec<Pattern> {
    let parse = |pattern: &D| {
        let pattern = pattern.as_ref();
        pattern.parse::<Pattern>().unwrap_or_else(|error| panic!("{pattern}: {error}"))
    };
    patterns.iter().map(parse).collect()
}

/// A response as a guest gets it.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: http::response::Parts,
    body: Vec<u8>,
}

impl Answer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    fn header(&self, name: &str) -> Option<String> {
        self.head.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    }

    /// Everything that a guest can see of it.
    fn seen(&self) -> Vec<u8> {
        let mut seen = self.body.clone();
        for (name, value) in &self.head.headers {
            seen.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\n"].concat());
        }
        seen.extend(format!("{:?} {:?}", self.head.extensions, self.head.status).into_bytes());
        if let Some(reason) = self.head.extensions.get::<hyper::ext::ReasonPhrase>() {
            seen.extend(reason.as_bytes());
        }
        seen
    }
}

/// The result of a request.
#[derive(Debug)]
enum Asked {
    /// A response, to its end.
    Answered(Answer),
    /// The gate's error, before the head of the response or in its body.
    Failed(GateError),
    /// It could not even be asked: no part of the host takes such a header.
    Unwritable,
}

impl Asked {
    /// In a word: the status, `blocked RULE`, the limit, or the part that failed.
    fn verdict(&self) -> String {
        match self {
            Self::Answered(answer) => answer.status.to_string(),
            Self::Unwritable => "unwritable".to_owned(),
            Self::Failed(GateError::Blocked(blocked)) => format!("blocked {}", blocked.rule),
            Self::Failed(GateError::Limit { limit, .. }) => format!("limit {limit}"),
            Self::Failed(GateError::Unresolved { .. }) => "unresolved".to_owned(),
            Self::Failed(GateError::Connect { .. }) => "connect".to_owned(),
            Self::Failed(GateError::Tls { .. }) => "tls".to_owned(),
            Self::Failed(GateError::Protocol { .. }) => "protocol".to_owned(),
            Self::Failed(GateError::Timeout { .. }) => "timeout".to_owned(),
            Self::Failed(error) => format!("{error:?}"),
        }
    }

    #[track_caller]
    fn answer(self) -> Answer {
        let Self::Answered(answer) = self else { panic!("{self:?}") };
        answer
    }

    #[track_caller]
    fn blocked(self) -> network::BlockReason {
        let Self::Failed(GateError::Blocked(blocked)) = self else { panic!("{self:?}") };
        blocked
    }
}

/// A request to be asked.
#[derive(Debug, Clone, Default)]
struct Request<'a> {
    method: &'a str,
    url: &'a str,
    headers: &'a [(&'a str, &'a str)],
    body: &'a str,
}

impl Request<'_> {
    async fn ask(self, call: &CallNetwork) -> Asked {
        // As a guest's HTTP library sends it, else as the host reads a URL that was written by hand.
        let uri = match self.url.parse::<http::Uri>() {
            Ok(uri) => uri,
            Err(_) => match Target::parse(self.url) {
                Ok(target) => target.to_string().parse().unwrap(),
                Err(blocked) => return Asked::Failed(blocked.into()),
            },
        };
        let method = if self.method.is_empty() { "GET" } else { self.method };
        let mut request = http::Request::builder().method(method).uri(uri);
        for (name, value) in self.headers {
            request = request.header(*name, *value);
        }
        let body = Full::new(Bytes::copy_from_slice(self.body.as_bytes())).map_err(|never| match never {});
        let Ok(request) = request.body(body.boxed_unsync()) else { return Asked::Unwritable };
        let asked = tokio::time::timeout(MAX_WAIT, async {
            let response = call.send(request, Timeouts::default()).await?;
            let (head, mut body) = response.into_parts();
            let mut bytes = Vec::new();
            while let Some(frame) = body.frame().await {
                if let Ok(data) = frame?.into_data() {
                    bytes.extend_from_slice(&data);
                }
            }
            Ok(Answer { status: head.status.as_u16(), head, body: bytes })
        });
        match asked.await.unwrap_or_else(|_| panic!("{self:?} takes for ever")) {
            Ok(answer) => Asked::Answered(answer),
            Err(error) => Asked::Failed(error),
        }
    }
}

async fn get(call: &CallNetwork, url: &str) -> Asked {
    Request { url, ..Request::default() }.ask(call).await
}

async fn post(call: &CallNetwork, url: &str, body: &str) -> Asked {
    Request { method: "POST", url, body, ..Request::default() }.ask(call).await
}

/// Checks the result of a request against one or several verdicts, split by ` | `.
#[track_caller]
fn check(asked: &Asked, expected: &str, what: &str) {
    let verdict = asked.verdict();
    assert!(expected.split(" | ").any(|expected| expected == verdict), "{what}: {verdict}, not {expected}: {asked:?}");
    if let Asked::Failed(GateError::Blocked(blocked)) = asked {
        assert!(!blocked.reason.is_empty() && !blocked.remedy.is_empty(), "{what}: {blocked:?}");
    }
}
