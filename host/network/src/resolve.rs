//! From a host to the addresses that may be connected to: one look-up, then the guard (SPEC NET-2).
//!
//! Survives DNS that answers differently each time: what was checked is what is connected to, and nobody asks twice. One bad
//! address among good ones refuses them all, because whoever mixes them wants the bad one to be taken.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;

use crate::policy::Grant;
use crate::target::{Host, Target};
use crate::{Blocked, GateError, Rule};

/// What one question waits for an answer, at most. It is asked twice.
const PATIENCE: Duration = Duration::from_secs(3);

/// Looks names up.
pub(crate) struct Resolver {
    /// The server to ask instead of the system's.
    server: Option<SocketAddr>,
    /// Made at the first look-up: reading the system's settings is no part of a host's start.
    made: OnceLock<TokioResolver>,
}

impl Resolver {
    pub(crate) fn new(server: Option<SocketAddr>) -> Self {
        Self { server, made: OnceLock::new() }
    }

    /// Every address of a host. An address is its own, without a look-up.
    pub(crate) async fn addresses(&self, host: &Host) -> Result<Vec<IpAddr>, GateError> {
        let name = match host {
            Host::Address(address) => return Ok(vec![*address]),
            Host::Name(name) => name,
        };
        let unresolved = |error: NetError| GateError::Unresolved { host: name.clone(), message: error.to_string() };
        let resolver = self.resolver().map_err(unresolved)?;
        // With a dot at the end no search list is applied: the name means the same everywhere.
        let found = resolver.lookup_ip(format!("{name}.")).await.map_err(unresolved)?;
        let addresses: Vec<IpAddr> = found.iter().map(|address| address.to_canonical()).collect();
        if addresses.is_empty() {
            return Err(GateError::Unresolved { host: name.clone(), message: "the answer is empty".to_owned() });
        }
        Ok(addresses)
    }

    fn resolver(&self) -> Result<&TokioResolver, NetError> {
        if let Some(resolver) = self.made.get() {
            return Ok(resolver);
        }
        let made = self.make()?;
        Ok(self.made.get_or_init(|| made))
    }

    fn make(&self) -> Result<TokioResolver, NetError> {
        let mut builder = match self.server {
            Some(server) => {
                let config = ResolverConfig::from_name_servers(vec![name_server(server)]);
                TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
            }
            None => TokioResolver::builder_tokio()?,
        };
        tune(builder.options_mut(), self.server.is_some());
        builder.build()
    }
}

fn tune(options: &mut ResolverOpts, overridden: bool) {
    // Both families, always: an address that is not asked for is an address that is not checked.
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.timeout = options.timeout.min(PATIENCE);
    options.cache_size = 0;
    if overridden {
        options.use_hosts_file = ResolveHosts::Never;
    }
}

fn name_server(server: SocketAddr) -> NameServerConfig {
    let mut config = NameServerConfig::udp_and_tcp(server.ip());
    config.connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()]
        .into_iter()
        .map(|mut connection| {
            connection.port = server.port();
            connection
        })
        .collect();
    config
}

/// The owner's list of private addresses.
pub(crate) type Private = HashSet<SocketAddr>;

/// The addresses to connect to, in the order of the answer, or the refusal of them all.
pub(crate) fn guard(
    target: &Target,
    addresses: &[IpAddr],
    grant: Grant,
    private: &Private,
) -> Result<Vec<SocketAddr>, Blocked> {
    let sockets = addresses.iter().map(|address| SocketAddr::new(address.to_canonical(), target.port()));
    let mut checked = Vec::with_capacity(addresses.len());
    for socket in sockets {
        if let Some(what) = crate::address::not_public(socket.ip()) {
            let listed = private.contains(&socket);
            if !listed || grant != Grant::Exact {
                return Err(refused(target, socket, what, listed));
            }
        }
        checked.push(socket);
    }
    Ok(checked)
}

fn refused(target: &Target, socket: SocketAddr, what: &str, listed: bool) -> Blocked {
    let asked = target.authority();
    let reason = match target.host() {
        Host::Address(_) => format!("`{asked}` is not a public address ({what})"),
        Host::Name(_) => format!("`{asked}` has an address that is not public (`{}`, {what})", socket.ip()),
    };
    let remedy = if listed {
        format!(
            "ask the user for access to `{asked}` itself: a pattern that covers more does not open private addresses"
        )
    } else {
        format!("use a public host; only the owner can open it, with `{socket}` in the setting `network.private`")
    };
    Blocked { rule: Rule::PrivateAddress, asked, reason, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_address_refuses_them_all() {
        let target = Target::parse("http://site.example:8080/").unwrap();
        let private: Private = ["127.0.0.1:8080", "[::1]:8080"].iter().map(|text| text.parse().unwrap()).collect();
        let check = |addresses: &[&str], grant| {
            let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
            guard(&target, &addresses, grant, &private)
        };
        for (addresses, grant) in [
            (&["8.8.8.8"][..], Grant::Wide),
            (&["8.8.8.8", "2606:4700::1111"], Grant::Wide),
            (&["127.0.0.1"], Grant::Exact),
            (&["::ffff:127.0.0.1"], Grant::Exact),
            (&["127.0.0.1", "::1", "8.8.8.8"], Grant::Exact),
        ] {
            assert_eq!(check(addresses, grant).unwrap().len(), addresses.len(), "{addresses:?}");
        }
        for (addresses, grant, says) in [
            (&["127.0.0.1"][..], Grant::Wide, "a pattern that covers more"),
            (&["127.0.0.2"], Grant::Exact, "`127.0.0.2:8080`"),
            (&["8.8.8.8", "10.0.0.1"], Grant::Exact, "`10.0.0.1:8080`"),
            (&["10.0.0.1", "8.8.8.8"], Grant::Wide, "`10.0.0.1:8080`"),
            (&["127.0.0.1", "169.254.169.254"], Grant::Exact, "`169.254.169.254:8080`"),
        ] {
            let blocked = check(addresses, grant).unwrap_err();
            assert_eq!((blocked.rule, blocked.asked.as_str()), (Rule::PrivateAddress, "site.example:8080"));
            assert!(blocked.remedy.contains(says), "{addresses:?}: {}", blocked.remedy);
        }
    }

    #[test]
    fn another_port_of_a_listed_address_stays_closed() {
        let private: Private = HashSet::from(["127.0.0.1:8080".parse().unwrap()]);
        let target = Target::parse("http://127.0.0.1:8081/").unwrap();
        assert!(guard(&target, &["127.0.0.1".parse().unwrap()], Grant::Exact, &private).is_err());
    }
}
