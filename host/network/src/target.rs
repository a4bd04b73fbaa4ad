//! Where a request goes: a URL, taken apart and put together again in one way only.
//!
//! Knows no policy and no network. The address, the name in TLS and the `Host` header are built from a [`Target`], never from
//! the original text, so two readers of one URL cannot be played against each other (SPEC NET-2): mixed case, percent
//! signs, octal and hexadecimal numbers, look-alike letters, trailing dots, users in front of an `@`.

#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;

use base::text::Foreign;
use http::uri::PathAndQuery;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::{BlockReason, Rule};

/// The longest URL. Servers rarely take more than 8 KiB.
const MAX_BYTES: usize = 16 << 10;
/// The longest name and the longest label in it (RFC 1035, section 2.3.4).
const NAME_BYTES: usize = 253;
const LABEL_BYTES: usize = 63;
/// Characters that a path or query of `http` must encode.
const NOT_IN_PATHS: &AsciiSet =
    &CONTROLS.add(b'"').add(b'<').add(b'>').add(b'^').add(b'`').add(b'{').add(b'|').add(b'}');

/// How a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Clear text, without TLS.
    Http,
    /// Encrypted with TLS (`https`).
    Https,
}

impl Scheme {
    /// The scheme's name: `http` or `https`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port when none is named.
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A host, normalised: equal hosts are equal values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name in lower case, IDNA as punycode, without a trailing dot.
    Name(String),
    /// An address. IPv4 in IPv6 clothes is IPv4.
    Address(IpAddr),
}

impl Host {
    /// Parses a host as the URL standard does, and refuses the remaining odd ones. The error is a reason.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("the host is missing".to_owned());
        }
        if let Some(odd) = odd_character(text) {
            return Err(format!("the host contains {odd}"));
        }
        let bracketed = text.starts_with('[');
        if bracketed && text.contains('%') {
            return Err("the address has a zone".to_owned());
        }
        if !bracketed && text.contains(':') {
            return Err("an IPv6 address stands in brackets, as in `[2001:db8::1]:443`".to_owned());
        }
        match url::Host::parse(text) {
            Ok(url::Host::Ipv4(address)) => Ok(Self::Address(address.into())),
            Ok(url::Host::Ipv6(address)) => Ok(Self::Address(IpAddr::V6(address).to_canonical())),
            Ok(url::Host::Domain(name)) => name_of(name),
            Err(error) => Err(format!("`{}` is no host: {error}", shown(text))),
        }
    }
}

/// The name without its trailing dot, when it is one that DNS, TLS and HTTP read alike.
fn name_of(mut name: String) -> Result<Host, String> {
    if name.ends_with('.') {
        name.pop();
    }
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    if name.len() > NAME_BYTES || name.split('.').any(|label| label.len() > LABEL_BYTES) {
        return Err(format!("`{}` is longer than a name can be", shown(&name)));
    }
    if name.split('.').any(str::is_empty) {
        return Err(format!("`{}` has an empty label", shown(&name)));
    }
    if !name.bytes().all(|byte| is_plain(byte) || byte == b'.') {
        return Err(format!("`{}` contains a character that no name has", shown(&name)));
    }
    Ok(Host::Name(name))
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    scheme: Scheme,
    host: Host,
    port: u16,
    path: PathAndQuery,
}

impl Target {
    /// Reads an absolute URL. A fragment is dropped; invalid characters of a path are percent-encoded.
    ///
    /// # Errors
    /// If it does not parse, has another scheme than `http` and `https`, or a user.
    pub fn parse(url: &str) -> Result<Self, BlockReason> {
        if url.len() > MAX_BYTES {
            return Err(invalid(format!("the URL is longer than {MAX_BYTES} bytes")));
        }
        if let Some(odd) = odd_character(url) {
            return Err(invalid(format!("the URL contains {odd}")));
        }
        let Some((scheme, rest)) = url.split_once("://") else {
            let looks_like_scheme = url.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme));
            return Err(if looks_like_scheme { other_scheme() } else { invalid("the URL is not absolute") });
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let path = encoded(path);
        let path = if path.starts_with('/') { path } else { format!("/{path}") };
        let path = PathAndQuery::try_from(path).map_err(|_| invalid("the path is not valid"))?;
        Self::new(scheme, authority, path)
    }

    /// Reads a URL as a guest's HTTP library passed it.
    ///
    /// # Errors
    /// As [`Target::parse`].
    pub fn from_uri(uri: &http::Uri) -> Result<Self, BlockReason> {
        let scheme = uri.scheme_str().ok_or_else(|| invalid("the URL is not absolute"))?;
        let authority = uri.authority().map_or("", http::uri::Authority::as_str);
        let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        if scheme.len() + authority.len() + path.as_str().len() > MAX_BYTES {
            return Err(invalid(format!("the URL is longer than {MAX_BYTES} bytes")));
        }
        if let Some(odd) = odd_character(path.as_str()) {
            return Err(invalid(format!("the URL contains {odd}")));
        }
        let path = match path.as_str().chars().next() {
            Some('/') => path,
            Some('?') => {
                PathAndQuery::try_from(format!("/{}", path.as_str())).map_err(|_| invalid("the path is not valid"))?
            }
            // `OPTIONS *` is for proxies.
            _ => return Err(invalid("the path does not begin with `/`")),
        };
        Self::new(scheme, authority, path)
    }

    fn new(scheme: &str, authority: &str, path: PathAndQuery) -> Result<Self, BlockReason> {
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(other_scheme()),
        };
        if authority.contains('@') {
            return Err(BlockReason {
                rule: Rule::Userinfo,
                asked: String::new(),
                reason: "the URL carries a user in front of `@`".to_owned(),
                remedy: "send an `authorization` header instead".to_owned(),
            });
        }
        let (host, port) = split_port(authority).map_err(invalid)?;
        let host = Host::parse(host).map_err(invalid)?;
        Ok(Self { scheme, host, port: port.unwrap_or(scheme.default_port()), path })
    }

    /// The same place with another path and query.
    pub(crate) fn with_path(&self, path: PathAndQuery) -> Self {
        Self { path, ..self.clone() }
    }

    /// The scheme of the URL.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host of the URL.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The port, explicit or of the scheme.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Path and query, placeholders and all.
    #[must_use]
    pub fn path_and_query(&self) -> &PathAndQuery {
        &self.path
    }

    /// The host, and the port unless it is the scheme's own. It is the pattern that grants exactly this, too.
    #[must_use]
    pub fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            return self.host.to_string();
        }
        format!("{}:{}", self.host, self.port)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme.as_str(), self.authority(), self.path)
    }
}

/// Takes a port off an authority. The error is a reason.
pub(crate) fn split_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let after_host = match authority.rfind(']') {
        Some(bracket) => bracket,
        // More than one colon without brackets: parsing the host gives the error.
        None if authority.matches(':').count() > 1 => return Ok((authority, None)),
        None => 0,
    };
    let Some(colon) = authority.get(after_host..).and_then(|rest| rest.find(':')).map(|at| at + after_host) else {
        return Ok((authority, None));
    };
    let (host, port) = authority.split_at(colon);
    let digits = port.trim_start_matches(':');
    let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u16>().ok()).flatten();
    match number {
        Some(number) if number > 0 => Ok((host, Some(number))),
        _ => Err(format!("`{}` is no port: use a number from 1 to 65535", shown(digits))),
    }
}

/// A path or query with its invalid characters percent-encoded. Existing encodings stay unchanged.
pub(crate) fn encoded(path: &str) -> String {
    utf8_percent_encode(path, NOT_IN_PATHS).to_string()
}

/// The first character that is in no host, path or query, by name.
pub(crate) fn odd_character(text: &str) -> Option<&'static str> {
    text.chars().find_map(|character| match character {
        '\\' => Some("a backslash"),
        _ if character.is_control() => Some("a control character"),
        _ if character.is_whitespace() => Some("white space"),
        _ => None,
    })
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-'))
}

/// A piece of hostile text, harmless enough for a message. Uncut: secrets are removed later, and half of one would not be found.
/// The code that gives the message out cuts it.
pub(crate) fn shown(text: &str) -> String {
    Foreign(text).escaped(usize::MAX)
}

fn invalid(reason: impl Into<String>) -> BlockReason {
    BlockReason {
        rule: Rule::InvalidUrl,
        asked: String::new(),
        reason: reason.into(),
        remedy: "use an absolute URL such as `https://example.com/path`".to_owned(),
    }
}

fn other_scheme() -> BlockReason {
    BlockReason {
        rule: Rule::Scheme,
        asked: String::new(),
        reason: "the URL's scheme is neither `http` nor `https`".to_owned(),
        remedy: "use an `https` URL".to_owned(),
    }
}
