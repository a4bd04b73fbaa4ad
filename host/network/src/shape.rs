//! Shapes of requests: which requests a consent is for (SPEC APPR-1, NET-3).
//!
//! `[METHOD ]HOST[/PATH][ with CREDENTIAL[+CREDENTIAL]]`, for example `POST api.example.com/transfers`,
//! `GET mail.example.com with mail-key`, `PUT api.example.com/items/*`, `api.example.com`. The shape of a read covers no
//! write and the shape of a write no read; a bare host covers every request to it. Survives paths that servers read in
//! different ways: a shape with a path covers no dot segment, no `//`, and `*` no encoded slash.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use base::CredentialName;
use http::Method;
use percent_encoding::percent_decode_str;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::headers::is_reading;
use crate::target::{encoded, odd_character, shown};
use crate::unit::{Nature, is_method};
use crate::{Pattern, Target, Unit};

/// Which requests a consent is for. JSON: its text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline)]
pub struct Shape {
    /// `None`: any, reads and writes alike. `GET`: reads. Any other: writes with exactly this method
    /// (see [`Unit::class`] for methods such as `GET+BODY`).
    method: Option<Method>,
    host: Pattern,
    /// `None`: any. `*` as a whole segment stands for one segment.
    path: Option<String>,
    /// The credentials that a read may carry, sorted. A write may carry any.
    credentials: Vec<CredentialName>,
}

/// A text is not the shape of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidShape {
    /// The error and the correct form.
    pub message: String,
}

/// Stands before the names of credentials.
const WITH: &str = "with";

impl Shape {
    /// The shape of requests to one target. `None` if the path is one that servers read in different ways.
    pub(crate) fn of(
        method: Method,
        target: &Target,
        path: Option<&str>,
        mut credentials: Vec<CredentialName>,
    ) -> Option<Self> {
        let path = path.map(encoded);
        let is_clear = |path: &String| !path.contains('*') && wrong_in(path).is_none();
        credentials.sort();
        let host = Pattern::of(target);
        path.as_ref().is_none_or(is_clear).then_some(Self { method: Some(method), host, path, credentials })
    }

    /// The hosts and ports.
    #[must_use]
    pub fn host(&self) -> &Pattern {
        &self.host
    }

    /// Whether it covers all requests to its hosts.
    #[must_use]
    pub fn is_whole_host(&self) -> bool {
        self.method.is_none() && self.path.is_none()
    }

    /// Whether it covers requests to any path of its hosts, or nearly any: it names no path, or only `*` in it.
    #[must_use]
    pub fn is_any_path(&self) -> bool {
        self.path.as_deref().is_none_or(|path| path.split('/').skip(1).all(|segment| segment == "*"))
    }

    /// The credentials that a read of this shape may carry.
    #[must_use]
    pub fn credentials(&self) -> &[CredentialName] {
        &self.credentials
    }

    /// Whether every request that it covers is covered by `other` too. Some narrower shapes are not recognised.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let is_host = self.host == other.host || (self.host.is_exact() && other.host.is_wider(&self.host));
        let is_method = other.method.is_none() || self.method == other.method;
        let is_path = match (&self.path, &other.path) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(path), Some(wide)) => {
                let (own, wide): (Vec<_>, Vec<_>) = (path.split('/').collect(), wide.split('/').collect());
                own.len() == wide.len()
                    && own.iter().zip(&wide).all(|(own, wide)| own == wide || (*wide == "*" && is_one_segment(own)))
            }
        };
        // A shape without a method covers reads with any credential.
        let is_keyed = other.method.is_none() || self.credentials.iter().all(|name| other.credentials.contains(name));
        is_host && is_method && is_path && is_keyed
    }

    /// Whether it covers a request.
    #[must_use]
    pub fn covers(&self, unit: &Unit) -> bool {
        self.host.covers(&unit.target) && self.covers_method(unit) && self.covers_path(unit.path())
    }

    /// Whether the reads that it covers may carry data: it names their path, or is not about reads alone.
    #[must_use]
    pub fn lets_data_out(&self) -> bool {
        self.method.is_none() || self.path.is_some()
    }

    /// The same on this port alone: a shape without a port covers those of `http` and of `https`.
    pub(crate) fn at_port(self, port: u16) -> Self {
        Self { host: self.host.at_port(port), ..self }
    }

    fn covers_method(&self, unit: &Unit) -> bool {
        let Some(method) = &self.method else { return true };
        match (unit.nature(), is_reading(method.as_str())) {
            (Nature::Write, false) => unit.write_method().as_ref() == Some(method),
            (Nature::Read | Nature::KeyedRead, true) => unit.keys().all(|name| self.credentials.contains(name)),
            _ => false,
        }
    }

    fn covers_path(&self, path: &str) -> bool {
        let Some(pattern) = &self.path else { return true };
        let path = encoded(path);
        let (mut wanted, mut segments) = (pattern.split('/'), path.split('/'));
        loop {
            match (wanted.next(), segments.next()) {
                (None, None) => return true,
                (Some("*"), Some(segment)) if is_one_segment(segment) => {}
                (Some(wanted), Some(segment)) if wanted == segment => {}
                _ => return false,
            }
        }
    }
}

/// Whether every server takes a text for one segment of a path.
fn is_one_segment(segment: &str) -> bool {
    let decoded = percent_decode_str(segment).collect::<Vec<u8>>();
    !segment.is_empty() && !is_dots(segment) && !decoded.iter().any(|byte| matches!(byte, b'/' | b'\\'))
}

/// Whether a segment leads elsewhere, also encoded and with parameters: `.`, `..`, `%2e`, `..;a`.
fn is_dots(segment: &str) -> bool {
    let decoded = percent_decode_str(segment).collect::<Vec<u8>>();
    let name = decoded.split(|byte| *byte == b';').next().unwrap_or_default();
    matches!(name, b"." | b"..")
}

/// Why a path has no place in a shape.
fn wrong_in(path: &str) -> Option<String> {
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let inner = segments.len().saturating_sub(1);
    if segments.iter().take(inner).any(|segment| segment.is_empty()) {
        return Some("the path has an empty segment; write one `/` between segments".to_owned());
    }
    if segments.iter().any(|segment| is_dots(segment)) {
        return Some("the path has a dot segment; write the path that it leads to".to_owned());
    }
    let has_inner_star = |segment: &&str| segment.contains('*') && *segment != "*";
    segments.iter().any(has_inner_star).then(|| "`*` stands for a whole segment, as in `/items/*`".to_owned())
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(method) = &self.method {
            write!(f, "{method} ")?;
        }
        write!(f, "{}{}", self.host, self.path.as_deref().unwrap_or_default())?;
        for (index, name) in self.credentials.iter().enumerate() {
            let before = if index == 0 { " with " } else { "+" };
            write!(f, "{before}{name}")?;
        }
        Ok(())
    }
}

impl FromStr for Shape {
    type Err = InvalidShape;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::read(text)
            .map_err(|why| InvalidShape { message: format!("`{}` is no shape of requests: {why}", shown(text)) })
    }
}

impl Shape {
    /// The error is a reason.
    fn read(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let (words, credentials) = match words.as_slice() {
            [words @ .., WITH, names] => (words, read_credentials(names)?),
            words => (words, Vec::new()),
        };
        let (method, place) = match words {
            [word] if is_known_method(word) => return Err(format!("the host is missing; write `{word} example.com`")),
            [place] => (None, place),
            [method, place] => (Some(read_method(method)?), place),
            _ => return Err("write `METHOD HOST/PATH`, `GET HOST with CREDENTIAL` or `HOST`".to_owned()),
        };
        if !credentials.is_empty() && method.as_ref() != Some(&Method::GET) {
            return Err("only reads are told apart by credentials; write `GET HOST with CREDENTIAL`".to_owned());
        }
        if place.contains("://") {
            let bare = place.split_once("://").map_or(*place, |(_, rest)| rest);
            return Err(format!("it has a scheme; write `{}`", shown(bare)));
        }
        if place.contains(['?', '#']) {
            return Err("it has a query or a fragment; end it with the path".to_owned());
        }
        if let Some(odd) = odd_character(place) {
            return Err(format!("it contains {odd}"));
        }
        let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
        let path = (!path.is_empty()).then(|| encoded(path));
        if let Some(why) = path.as_deref().and_then(wrong_in) {
            return Err(why);
        }
        let is_whole_host = method.is_none() && path.is_none();
        let host = if is_whole_host { host.parse() } else { Pattern::parse_in_shape(host) };
        Ok(Self { method, host: host.map_err(|error| error.message)?, path, credentials })
    }
}

fn is_known_method(word: &str) -> bool {
    ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"].contains(&word)
}

fn read_method(word: &str) -> Result<Method, String> {
    if !word.split('+').all(is_method) {
        let capitals = word.to_ascii_uppercase();
        return Err(if capitals.split('+').all(is_method) {
            format!("a method is in capitals; write `{capitals}`")
        } else {
            format!("`{}` is no method; write one such as `POST` before the host", shown(word))
        });
    }
    if is_reading(word) {
        return Ok(Method::GET);
    }
    Method::from_bytes(word.as_bytes()).map_err(|_| format!("`{}` is no method", shown(word)))
}

fn read_credentials(names: &str) -> Result<Vec<CredentialName>, String> {
    let parse = |name: &str| CredentialName::parse(name).map_err(|error| error.to_string());
    let mut names = names.split('+').map(parse).collect::<Result<Vec<_>, _>>()?;
    names.sort();
    names.dedup();
    Ok(names)
}

impl Ord for Shape {
    fn cmp(&self, other: &Self) -> Ordering {
        self.to_string().cmp(&other.to_string())
    }
}

impl PartialOrd for Shape {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl TryFrom<String> for Shape {
    type Error = InvalidShape;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Shape> for String {
    fn from(shape: Shape) -> Self {
        shape.to_string()
    }
}
