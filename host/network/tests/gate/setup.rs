//! A gate as a test needs it.

use std::net::SocketAddr;
use std::sync::Arc;

use base::{CredentialName, Secret};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use network::{
    BlockReason, CallLimits, CallNetwork, Gate, GateError, NetworkConfig, Policy, RequestBody, ResponseBody,
    RunExchange, RunNetwork, Stage, Taint, Timeouts,
};
use vault::{GrantedCredential, RunSecrets, Scrubber};

use crate::dns::Dns;

pub const LIMITS: CallLimits =
    CallLimits { requests: 100, request_bytes: 1 << 20, response_bytes: 1 << 20, idempotency_key: None };

#[derive(Default)]
pub struct Setup {
    pub config: NetworkConfig,
    pub policy: Policy,
    credentials: Vec<(&'static str, &'static str, String)>,
}

impl Setup {
    pub fn with(config: NetworkConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// Grants patterns of domains.
    pub fn domains(mut self, patterns: &[&str]) -> Self {
        self.policy.domains.extend(patterns.iter().map(|pattern| pattern.parse().unwrap()));
        self
    }

    pub fn private(mut self, address: SocketAddr) -> Self {
        self.config.private.push(address.to_string());
        self
    }

    /// Puts a server on the owner's list, and grants it by its address.
    pub fn reaching(self, address: SocketAddr) -> Self {
        self.domains(&[&address.to_string()]).private(address)
    }

    /// The same for a server that is reached by a name: both have to be granted.
    pub fn named(self, host: &str, address: SocketAddr) -> Self {
        self.domains(&[host]).reaching(address)
    }

    pub fn dns(mut self, dns: &Dns) -> Self {
        self.config.resolver = Some(dns.address.to_string());
        self
    }

    pub fn credential(mut self, name: &'static str, value: &'static str, domain: &str) -> Self {
        self.credentials.push((name, value, domain.to_owned()));
        self
    }

    pub fn run(self) -> RunNetwork {
        let (gate, policy, secrets) = self.parts();
        gate.run(policy, Arc::new(secrets), Taint::default())
    }

    /// The same run, with its writes held.
    pub fn staged(self, stage: Arc<dyn Stage>) -> RunNetwork {
        let (gate, policy, secrets) = self.parts();
        gate.resume_staged(policy, Arc::new(secrets), Taint::default(), RunExchange::default(), stage)
    }

    fn parts(self) -> (Gate, Policy, RunSecrets) {
        let name = |name: &str| CredentialName::parse(name).unwrap();
        let known = self.credentials.iter().map(|(n, value, _)| (name(n), Secret::new((*value).to_owned()))).collect();
        let granted = self.credentials.iter().map(|(n, value, domain)| GrantedCredential {
            name: name(n),
            value: Secret::new((*value).to_owned()),
            domains: vec![domain.clone()],
            raw: false,
        });
        let secrets = RunSecrets::new(granted.collect(), Arc::new(Scrubber::new(known)));
        (Gate::new(&self.config).unwrap(), self.policy, secrets)
    }

    pub fn call(self) -> CallNetwork {
        self.run().call(LIMITS)
    }
}

pub fn request(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> http::Request<RequestBody> {
    let mut request = http::Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes())).map_err(|never| match never {});
    request.body(body.boxed_unsync()).unwrap()
}

pub async fn get(call: &CallNetwork, url: &str) -> Result<String, GateError> {
    text(call.send(request("GET", url, &[], ""), Timeouts::default()).await?).await
}

pub async fn post(call: &CallNetwork, url: &str, body: &str) -> Result<String, GateError> {
    text(call.send(request("POST", url, &[], body), Timeouts::default()).await?).await
}

pub async fn text(response: http::Response<ResponseBody>) -> Result<String, GateError> {
    let bytes = response.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The refusal, when there is one.
pub fn blocked<T: std::fmt::Debug>(outcome: Result<T, GateError>) -> BlockReason {
    match outcome {
        Err(GateError::Blocked(blocked)) => blocked,
        other => panic!("not refused by a rule: {other:?}"),
    }
}
