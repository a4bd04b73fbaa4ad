//! `[network]`: the owner's settings for the whole home.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::str::FromStr;

use base::{Refusal, RefusalCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Pattern, Shape};

/// The section `[network]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkConfig {
    /// Private addresses that may be reached, `ADDRESS:PORT` each, by runs that were granted exactly that address (SPEC NET-2).
    /// A host name that leads there needs a grant of the name and one of the address. Default none.
    pub private: Vec<String>,
    /// Shapes of requests that a run may send after it has read from the web (SPEC TAINT-1), such as
    /// `POST api.example.com/transfers` or `GET mail.example.com with mail-key`; a bare host is every request to it. Default
    /// none.
    pub writes: Vec<String>,
    /// The treatment of any other write, of a read with a credential, and of a read that carries too much. Default `ask`.
    pub tainted_write: TaintedWrite,
    /// Bytes that a read may carry after the run has read from the web, in URL and headers, beyond the user's words and the
    /// values of its own host (SPEC TAINT-1). Default 32.
    pub carried_bytes: u64,
    /// The same for a host that only a wildcard grants; labels of its name count. Default 8.
    pub carried_foreign_bytes: u64,
    /// The same for all reads of a run from one host together, or from one domain where only a wildcard grants it. Default
    /// 256.
    pub carried_bytes_per_run: u64,
    /// Patterns of domains that a program of the network tier may reach outside runs (SPEC CODE-6). Default none.
    pub code_domains: Vec<String>,
    /// The DNS server to ask, `ADDRESS:PORT`, instead of the system's. The guard on addresses stays on. Default none.
    pub resolver: Option<String>,
    /// PEM files of certificate authorities that are trusted beside the system's. Default none.
    pub authorities: Vec<std::path::PathBuf>,
    /// Milliseconds a request may take, from the look-up to the last byte. Default 30,000 (SPEC TOOL-3).
    pub timeout_ms: u64,
    /// Milliseconds the look-up and the connection may take. Default 10,000.
    pub connect_timeout_ms: u64,
    /// Bytes of a response's header. Default 64 KiB.
    pub response_header_bytes: usize,
}

/// The treatment of a request that needs consent because the run has read from the web.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaintedWrite {
    /// The owner is asked.
    #[default]
    Ask,
    /// The request is refused.
    Deny,
    /// The request passes without consent.
    Allow,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            private: Vec::new(),
            writes: Vec::new(),
            tainted_write: TaintedWrite::Ask,
            carried_bytes: 32,
            carried_foreign_bytes: 8,
            carried_bytes_per_run: 256,
            code_domains: Vec::new(),
            resolver: None,
            authorities: Vec::new(),
            timeout_ms: 30_000,
            connect_timeout_ms: 10_000,
            response_header_bytes: 64 << 10,
        }
    }
}

impl NetworkConfig {
    /// Checks every setting as [`Gate::new`](crate::Gate::new) does. Reads the files of authorities.
    ///
    /// # Errors
    /// With the first that is wrong, by its key.
    pub fn check(&self) -> Result<(), Refusal> {
        crate::Gate::new(self).map(|_| ())
    }

    /// The owner's list of private addresses.
    pub(crate) fn private(&self) -> Result<HashSet<SocketAddr>, Refusal> {
        self.private.iter().map(|text| service("private", text)).collect()
    }

    /// The DNS server that is asked instead of the system's.
    pub(crate) fn resolver(&self) -> Result<Option<SocketAddr>, Refusal> {
        self.resolver.as_deref().map(|text| service("resolver", text)).transpose()
    }

    /// The shapes of requests that a run may send after it has read from the web.
    ///
    /// # Errors
    /// When one is not a shape.
    pub fn write_shapes(&self) -> Result<Vec<Shape>, Refusal> {
        parsed("writes", &self.writes)
    }

    /// The patterns of domains that a program of the network tier may reach outside runs.
    ///
    /// # Errors
    /// When one is not a pattern.
    pub fn code_patterns(&self) -> Result<Vec<Pattern>, Refusal> {
        parsed("code_domains", &self.code_domains)
    }
}

fn parsed<T: FromStr<Err: std::fmt::Display>>(setting: &str, texts: &[String]) -> Result<Vec<T>, Refusal> {
    let parse = |text: &String| text.parse().map_err(|error| wrong(setting, &format!("{error}")));
    texts.iter().map(parse).collect()
}

fn service(setting: &str, text: &str) -> Result<SocketAddr, Refusal> {
    let address = socket_address(setting, text)?;
    let broadcast = address.ip() == std::net::Ipv4Addr::BROADCAST;
    if address.port() == 0 || address.ip().is_unspecified() || address.ip().is_multicast() || broadcast {
        return Err(wrong(setting, &format!("`{text}` is not the address of one service")));
    }
    Ok(address)
}

fn socket_address(setting: &str, text: &str) -> Result<SocketAddr, Refusal> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| wrong(setting, &format!("`{text}` is no address with a port, as in `127.0.0.1:8080`")))?;
    Ok(SocketAddr::new(address.ip().to_canonical(), address.port()))
}

pub(crate) fn wrong(setting: &str, why: &str) -> Refusal {
    Refusal::new(RefusalCode::InvalidRequest, format!("the setting `network.{setting}` is wrong: {why}"))
        .with_remedy(format!("correct `{setting}` in the section `[network]` of the configuration"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_name_one_service() {
        let config = |text: &str| NetworkConfig { private: vec![text.to_owned()], ..NetworkConfig::default() };
        for (good, means) in
            [("127.0.0.1:8080", "127.0.0.1:8080"), ("[::1]:80", "[::1]:80"), ("[::ffff:10.0.0.1]:80", "10.0.0.1:80")]
        {
            assert!(config(good).private().unwrap().contains(&means.parse().unwrap()), "{good}");
            let config = NetworkConfig { resolver: Some(good.to_owned()), ..NetworkConfig::default() };
            assert_eq!(config.resolver().unwrap(), Some(means.parse().unwrap()), "{good}");
        }
        for bad in
            ["127.0.0.1", "localhost:80", "10.0.0.0/8", "0.0.0.0:80", "127.0.0.1:0", "[::]:80", "224.0.0.1:80", "*:80"]
        {
            let refusal = config(bad).private().unwrap_err();
            assert!(refusal.reason.contains("network.private"), "{bad}: {refusal}");
            let config = NetworkConfig { resolver: Some(bad.to_owned()), ..NetworkConfig::default() };
            assert!(config.resolver().unwrap_err().reason.contains("network.resolver"), "{bad}");
        }
    }
}
