//! From a host to the addresses that may be connected to: one look-up, then the guard (SPEC NET-2).
//!
//! Survives DNS that answers differently each time: the checked address is the one connected to, and no second look-up is made. One bad
//! address among good ones refuses them all, because a server that mixes them wants the bad one to be used.

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

use crate::target::{Host, Target};
use crate::{BlockReason, GateError, Policy, Rule};

/// Maximum wait for the answer to one query. Each query is sent twice.
const PATIENCE: Duration = Duration::from_secs(3);

/// Resolves names to addresses.
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

/// A refusal in the words for the guest, and for the owner: a name must not reveal private addresses to a guest.
#[derive(Debug)]
pub(crate) struct RefusedAddress {
    pub(crate) blocked: BlockReason,
    /// With the address, and the setting that would open it.
    pub(crate) for_owner: String,
}

/// The addresses to connect to, in the order of the answer, or the refusal of them all.
///
/// A private one is reached when the owner lists it and the run was granted both the host and the address, each by name.
/// Without the latter, the server of a granted name could choose among all private services of the list.
pub(crate) fn guard(
    target: &Target,
    addresses: &[IpAddr],
    policy: &Policy,
    private: &Private,
) -> Result<Vec<SocketAddr>, RefusedAddress> {
    let sockets = addresses.iter().map(|address| SocketAddr::new(address.to_canonical(), target.port()));
    let mut checked = Vec::with_capacity(addresses.len());
    for socket in sockets {
        if let Some(what) = crate::address::not_public(socket.ip()) {
            let is_open = OpenAddress {
                listed: private.contains(&socket),
                host_named: policy.names(target.host(), target.port()),
                address_named: policy.names(&Host::Address(socket.ip()), socket.port()),
            };
            if !is_open.all() {
                return Err(is_open.refused(target, socket, what));
            }
        }
        checked.push(socket);
    }
    Ok(checked)
}

/// The grants that open a private address.
struct OpenAddress {
    /// The owner's list has it.
    listed: bool,
    /// The run was granted the host itself.
    host_named: bool,
    /// The run was granted the address itself. The same where the host is the address.
    address_named: bool,
}

impl OpenAddress {
    fn all(&self) -> bool {
        self.listed && self.host_named && self.address_named
    }

    fn refused(&self, target: &Target, socket: SocketAddr, what: &str) -> RefusedAddress {
        let asked = target.authority();
        let is_literal = matches!(target.host(), Host::Address(_));
        let mut missing = Vec::new();
        if !self.listed {
            missing.push(format!("`{socket}` in the setting `network.private`"));
        }
        if !self.host_named {
            missing.push(format!("a grant of `{asked}` itself"));
        }
        if !self.address_named && !is_literal {
            missing.push(format!("a grant of `{socket}` beside the name"));
        }
        let behind = format!("`{asked}` has an address that is not public (`{}`, {what})", socket.ip());
        let for_owner = format!("{behind}; to open it takes {}", missing.join(" and "));
        let reason = if is_literal {
            format!("`{asked}` is not a public address ({what})")
        } else if self.address_named {
            behind
        } else {
            format!("`{asked}` has an address that is not public")
        };
        let remedy = if !is_literal && !self.address_named {
            "use a public host; only the owner can open it, by granting the address behind the name, too: the trace of this \
             request tells the owner which"
                .to_owned()
        } else if !self.listed {
            format!("use a public host; only the owner can open it, with `{socket}` in the setting `network.private`")
        } else {
            format!(
                "ask the user for access to `{asked}` itself: a pattern that covers more does not open private addresses"
            )
        };
        RefusedAddress { blocked: BlockReason { rule: Rule::PrivateAddress, asked, reason, remedy }, for_owner }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(domains: &[&str], refused: &[&str]) -> Policy {
        let patterns = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Policy { domains: patterns(domains), refused: patterns(refused), ..Policy::default() }
    }

    fn private(sockets: &[&str]) -> Private {
        sockets.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn check(url: &str, addresses: &[&str], policy: &Policy) -> Result<Vec<SocketAddr>, RefusedAddress> {
        let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        guard(
            &Target::parse(url).unwrap(),
            &addresses,
            policy,
            &private(&["127.0.0.1:8080", "[::1]:8080", "10.0.0.5:80"]),
        )
    }

    const NAME: &str = "http://site.example:8080/";

    #[test]
    fn one_bad_address_refuses_them_all() {
        let named = policy(&["site.example:8080", "127.0.0.1:8080", "[::1]:8080", "127.0.0.2:8080"], &[]);
        let wide = policy(&["*:8080", "127.0.0.1:8080", "[::1]:8080", "127.0.0.2:8080"], &[]);
        for (addresses, policy) in [
            (&["8.8.8.8"][..], &wide),
            (&["8.8.8.8", "2606:4700::1111"], &wide),
            (&["127.0.0.1"], &named),
            (&["::ffff:127.0.0.1"], &named),
            (&["127.0.0.1", "::1", "8.8.8.8"], &named),
        ] {
            assert_eq!(check(NAME, addresses, policy).unwrap().len(), addresses.len(), "{addresses:?}");
        }
        for (addresses, policy, opens, guest_may_know) in [
            (&["127.0.0.1"][..], &wide, "a grant of `site.example:8080` itself", true),
            (&["127.0.0.2"], &named, "`127.0.0.2:8080` in the setting", true),
            (&["8.8.8.8", "10.0.0.1"], &named, "a grant of `10.0.0.1:8080` beside the name", false),
            (&["10.0.0.1", "8.8.8.8"], &wide, "`10.0.0.1:8080` in the setting", false),
            (&["127.0.0.1", "169.254.169.254"], &named, "`169.254.169.254:8080` in the setting", false),
        ] {
            let RefusedAddress { blocked, for_owner } = check(NAME, addresses, policy).unwrap_err();
            assert_eq!((blocked.rule, blocked.asked.as_str()), (Rule::PrivateAddress, "site.example:8080"));
            assert!(for_owner.contains(opens), "{addresses:?}: {for_owner}");
            let told = format!("{blocked:?}");
            let knows = addresses.iter().any(|address| told.contains(address)) || told.contains("metadata");
            assert_eq!(knows, guest_may_know, "{addresses:?}: {told}");
        }
    }

    #[test]
    fn a_name_opens_no_private_address_that_was_not_granted_beside_it() {
        const SITE: &str = "http://site.example/";
        for (domains, refused, url, opens) in [
            // The server of the name does not choose among the owner's services.
            (&["site.example"][..], &[][..], SITE, false),
            (&["site.example", "*"], &[], SITE, false),
            (&["site.example", "10.0.0.5:8080"], &[], SITE, false),
            (&["site.example", "10.0.0.6"], &[], SITE, false),
            (&["*", "10.0.0.5"], &[], SITE, false),
            (&["10.0.0.5"], &[], SITE, false),
            (&["site.example", "10.0.0.5"], &["10.0.0.5"], SITE, false),
            (&["site.example", "10.0.0.5"], &[], SITE, true),
            (&["site.example:80", "10.0.0.5:80"], &[], SITE, true),
            (&["10.0.0.5"], &[], "http://10.0.0.5/", true),
            (&["10.0.0.5:80"], &[], "http://10.0.0.5/", true),
            (&["*"], &[], "http://10.0.0.5/", false),
        ] {
            let outcome = check(url, &["10.0.0.5"], &policy(domains, refused));
            assert_eq!(outcome.is_ok(), opens, "{domains:?} without {refused:?}: {outcome:?}");
        }
    }

    #[test]
    fn another_port_of_a_listed_address_stays_closed() {
        let named = policy(&["127.0.0.1:8080", "127.0.0.1:8081"], &[]);
        assert!(check("http://127.0.0.1:8080/", &["127.0.0.1"], &named).is_ok());
        let refused = check("http://127.0.0.1:8081/", &["127.0.0.1"], &named).unwrap_err();
        assert!(refused.blocked.remedy.contains("`127.0.0.1:8081`"), "{refused:?}");
    }
}
