//! Patterns of domains: `example.com`, `*.example.com`, `*`, each with an optional `:port` (SPEC NET-1).
//!
//! A pattern's host is read by the same code as a request's, so the two cannot disagree about a name. A pattern that
//! would cover hosts of many owners (`*.com`, `*.github.io`) is refused when it is written (SPEC NET-3).

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::target::{Host, Target, shown, split_port};

/// Which hosts and ports a run may reach.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline)]
pub struct Pattern {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Hosts {
    /// `*`: any host. The guard on addresses makes it any public host.
    Any,
    /// `*.suffix`: any depth of subdomains, not the bare domain.
    Below(String),
    /// Exactly this one host.
    Exactly(Host),
}

/// A text is not a pattern, or one that is too wide.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidPattern {
    /// The error and the correct form.
    pub message: String,
}

impl Pattern {
    /// Whether it covers a host, at any port.
    #[must_use]
    pub fn covers_host(&self, host: &Host) -> bool {
        match (&self.hosts, host) {
            (Hosts::Any, _) => true,
            (Hosts::Below(suffix), Host::Name(name)) => {
                name.strip_suffix(suffix.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            (Hosts::Below(_), Host::Address(_)) => false,
            (Hosts::Exactly(only), host) => only == host,
        }
    }

    /// Whether it covers the host of this name, at any port. An invalid name is not covered.
    #[must_use]
    pub fn covers_name(&self, name: &str) -> bool {
        Host::parse(name).is_ok_and(|host| self.covers_host(&host))
    }

    /// Whether it covers a port: the one it names, else those of the web (SPEC NET-2).
    #[must_use]
    pub fn covers_port(&self, port: u16) -> bool {
        self.port.map_or(matches!(port, 80 | 443), |named| named == port)
    }

    /// Whether it covers every host and port that `other` does, and `other` names one host.
    #[must_use]
    pub fn is_wider(&self, other: &Self) -> bool {
        let Hosts::Exactly(host) = &other.hosts else { return false };
        let is_port = match other.port {
            Some(port) => self.covers_port(port),
            None => self.port.is_none(),
        };
        is_port && self.covers_host(host)
    }

    /// Whether it covers host and port of a target.
    #[must_use]
    pub fn covers(&self, target: &Target) -> bool {
        self.covers_host(target.host()) && self.covers_port(target.port())
    }

    /// The port it names.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Whether it names one host. Only such patterns open the owner's private addresses.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        matches!(self.hosts, Hosts::Exactly(_))
    }

    /// The end of a name that a wildcard fixes, without a dot in front; empty for `*` and for patterns without a wildcard.
    pub(crate) fn fixed_end(&self) -> &str {
        match &self.hosts {
            Hosts::Below(suffix) => suffix,
            Hosts::Any | Hosts::Exactly(_) => "",
        }
    }

    /// The pattern of one target: its host, and its port unless it is the scheme's own.
    pub(crate) fn of(target: &Target) -> Self {
        let port = (target.port() != target.scheme().default_port()).then_some(target.port());
        Self { hosts: Hosts::Exactly(target.host().clone()), port }
    }

    /// The same hosts, on this port only.
    pub(crate) fn at_port(self, port: u16) -> Self {
        Self { port: Some(port), ..self }
    }

    /// Reads the pattern in a shape with a method or a path. Its host may be a public suffix: a request to such a host is
    /// rare, but its shape has to read back.
    pub(crate) fn parse_in_shape(text: &str) -> Result<Self, InvalidPattern> {
        Self::parse(text, |host| Ok(Hosts::Exactly(Host::parse(host)?)))
    }

    fn parse(text: &str, exactly: fn(&str) -> Result<Hosts, String>) -> Result<Self, InvalidPattern> {
        let error =
            |why: &str| InvalidPattern { message: format!("`{}` is no pattern of domains: {why}", shown(text)) };
        if text.is_empty() {
            return Err(error("it is empty; write `example.com`, `*.example.com` or `*`"));
        }
        if let Some((_, rest)) = text.split_once("://") {
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            return Err(error(&format!("it has a scheme; write `{}`", shown(host))));
        }
        if text.contains('@') {
            return Err(error("it has a user in front of `@`; write the host only"));
        }
        if text.contains(['/', '?', '#']) {
            return Err(error("it has a path; write the host only, paths cannot be told apart"));
        }
        let (host, port) = split_port(text).map_err(|reason| error(&reason))?;
        let hosts = if host == "*" {
            Hosts::Any
        } else if let Some(suffix) = host.strip_prefix("*.") {
            below(suffix).map_err(|reason| error(&reason))?
        } else {
            reject_inner_star(host).and_then(|()| exactly(host)).map_err(|reason| error(&reason))?
        };
        Ok(Self { hosts, port })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::Any => f.write_str("*")?,
            Hosts::Below(suffix) => write!(f, "*.{suffix}")?,
            Hosts::Exactly(host) => host.fmt(f)?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl FromStr for Pattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text, exactly)
    }
}

fn below(suffix: &str) -> Result<Hosts, String> {
    reject_inner_star(suffix)?;
    match Host::parse(suffix)? {
        Host::Address(_) => Err("an address has no subdomains; write the address alone".to_owned()),
        // Every single label is one, known or not: names below a top-level domain have many owners.
        Host::Name(name) if is_public_suffix(&name, Kind::Any) => {
            Err(format!("everything below `{name}` is too wide; name the domain, as in `*.example.{name}`"))
        }
        Host::Name(name) => Ok(Hosts::Below(name)),
    }
}

fn exactly(host: &str) -> Result<Hosts, String> {
    match Host::parse(host)? {
        Host::Name(name) if is_public_suffix(&name, Kind::Registry) => {
            Err(format!("`{name}` is a public suffix and no host; name the host, as in `example.{name}`"))
        }
        host => Ok(Hosts::Exactly(host)),
    }
}

fn reject_inner_star(host: &str) -> Result<(), String> {
    if host.contains('*') {
        return Err("`*` stands alone or as the whole first label, as in `*.example.com`".to_owned());
    }
    Ok(())
}

/// Which part of the list of public suffixes.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Those that a registry runs, such as `com` and `co.uk`.
    Registry,
    /// Also those of companies that give names to customers, which are hosts themselves: `github.io`.
    Any,
}

fn is_public_suffix(name: &str, kind: Kind) -> bool {
    psl::suffix(name.as_bytes()).is_some_and(|suffix| {
        suffix.as_bytes() == name.as_bytes() && (kind == Kind::Any || suffix.typ() == Some(psl::Type::Icann))
    })
}

impl TryFrom<String> for Pattern {
    type Error = InvalidPattern;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_are_normalised() {
        for (text, normalised) in [
            ("*", "*"),
            ("*:8080", "*:8080"),
            ("Example.COM.", "example.com"),
            ("example.com:8443", "example.com:8443"),
            ("*.Example.com", "*.example.com"),
            ("*.example.com:8443", "*.example.com:8443"),
            ("b\u{fc}cher.example", "xn--bcher-kva.example"),
            ("*.b\u{fc}cher.example", "*.xn--bcher-kva.example"),
            ("localhost:8080", "localhost:8080"),
            ("0x7f.1:8080", "127.0.0.1:8080"),
            ("1.2.3.4", "1.2.3.4"),
            ("[2001:DB8::1]:443", "[2001:db8::1]:443"),
            ("[2001:db8::1]", "[2001:db8::1]"),
            ("[::ffff:1.2.3.4]:80", "1.2.3.4:80"),
            ("github.io", "github.io"),
            ("*.me.github.io", "*.me.github.io"),
        ] {
            let pattern: Pattern = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(pattern.to_string(), normalised, "{text}");
            assert_eq!(normalised.parse::<Pattern>().unwrap(), pattern, "{text}");
        }
    }

    #[test]
    fn what_is_no_pattern_says_what_would_be() {
        for (text, says) in [
            ("", "it is empty"),
            ("https://example.com/a", "write `example.com`"),
            ("example.com/a", "path"),
            ("example.com?a", "path"),
            ("u@example.com", "user"),
            ("exa mple.com", "white space"),
            ("example.com\\a", "backslash"),
            ("exam\nple.com", "control"),
            ("a.*.example.com", "whole first label"),
            ("*a.example.com", "whole first label"),
            ("*.*.example.com", "whole first label"),
            ("**", "whole first label"),
            ("*.", "host is missing"),
            ("*..example.com", "empty label"),
            ("a..b", "empty label"),
            ("%2a.example.com", "no name has"),
            ("*.1.2.3.4", "no subdomains"),
            ("2001:db8::1", "brackets"),
            ("example.com:0", "no port"),
            ("example.com:x", "no port"),
            ("example.com:", "no port"),
            ("*.com", "too wide"),
            ("*.com.", "too wide"),
            ("*.CO.uk", "too wide"),
            ("*.github.io", "too wide"),
            ("*.unheardof", "too wide"),
            ("*.xn--p1ai", "too wide"),
            ("*.\u{516c}\u{53f8}.cn", "too wide"),
            ("*.anything.ck", "too wide"),
            ("com", "public suffix"),
            ("co.uk", "public suffix"),
            ("\u{516c}\u{53f8}.cn", "public suffix"),
        ] {
            let error = text.parse::<Pattern>().expect_err(text);
            assert!(error.message.contains(says), "{text}: {error}");
        }
    }

    fn covers(pattern: &str, url: &str) -> bool {
        pattern.parse::<Pattern>().unwrap().covers(&Target::parse(url).unwrap())
    }

    #[test]
    fn a_pattern_covers_what_it_says_and_no_more() {
        for (pattern, url) in [
            ("example.com", "https://example.com/"),
            ("example.com", "http://EXAMPLE.com./"),
            ("*.example.com", "https://a.example.com/"),
            ("*.example.com", "https://a.b.example.com/"),
            ("*", "https://anything.example/"),
            ("*", "https://1.2.3.4/"),
            ("example.com:8443", "https://example.com:8443/"),
            ("1.2.3.4", "http://0x01020304/"),
            ("[2001:db8::1]:8080", "http://[2001:db8:0:0::1]:8080/"),
        ] {
            assert!(covers(pattern, url), "{pattern} {url}");
        }
        for (pattern, url) in [
            ("example.com", "https://a.example.com/"),
            ("example.com", "https://example.com.evil.org/"),
            ("example.com", "https://example.com:8443/"),
            ("example.com:8443", "https://example.com/"),
            ("*.example.com", "https://example.com/"),
            ("*.example.com", "https://evilexample.com/"),
            ("*.example.com", "https://a.example.com.evil.org/"),
            ("*.example.com", "https://example.com.evil.org/"),
            ("*:8080", "https://example.com/"),
            ("1.2.3.4", "https://1.2.3.5/"),
            ("apple.com", "https://\u{430}pple.com/"),
        ] {
            assert!(!covers(pattern, url), "{pattern} {url}");
        }
    }

    proptest! {
        #[test]
        fn a_pattern_reads_itself(text in r"(\*\.|\*)?[a-zA-Z0-9._\[\]:-]{0,30}(:[0-9]{1,6})?") {
            if let Ok(pattern) = text.parse::<Pattern>() {
                prop_assert_eq!(pattern.to_string().parse::<Pattern>().unwrap(), pattern);
            }
        }

        #[test]
        fn subdomains_are_covered_and_nothing_else(
            label in "[a-z][a-z0-9]{0,9}",
            other in "[a-z][a-z0-9]{0,9}",
        ) {
            let domain = format!("{label}.example");
            let wide = format!("*.{domain}");
            let (below, glued) = (format!("http://{other}.{domain}/"), format!("http://{other}{domain}/"));
            let (bare, above) = (format!("http://{domain}/"), format!("http://{domain}.{other}.org/"));
            prop_assert!(covers(&wide, &below));
            prop_assert!(!covers(&wide, &bare));
            prop_assert!(!covers(&wide, &glued));
            prop_assert!(!covers(&wide, &above));
            prop_assert!(covers(&domain, &bare));
            for url in [&below, &glued, &above] {
                prop_assert!(!covers(&domain, url));
            }
        }
    }
}
