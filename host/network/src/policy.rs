//! What one run may reach. Values only: a change is another policy, swapped in whole.
//!
//! The decisions here are functions of policy, target and what was read; they know no network and no clock.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::target::{Host, Target};
use crate::{Blocked, Pattern, Rule, TaintedWrite, WebSource};

/// What one run may reach. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    /// The hosts granted.
    pub domains: Vec<Pattern>,
    /// The hosts that may be written to after the run has read from the web.
    pub writes: Vec<Pattern>,
    /// Hosts that the owner refused. Stronger than `domains`.
    pub refused: Vec<Pattern>,
    /// What becomes of a write to any other host after the run has read from the web.
    pub tainted_write: TaintedWrite,
}

/// How a target was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// By a pattern that names the host.
    Exact,
    /// By a pattern that covers more. It leads to public addresses only.
    Wide,
}

/// Patterns and sources that a message names; more are counted.
const MOST_NAMED: usize = 8;

impl Policy {
    /// Whether a run may send requests to a target, by name. The address behind the name is looked at later.
    ///
    /// # Errors
    /// When it may not: which rule, and what would change it.
    pub fn decide(&self, target: &Target) -> Result<Grant, Blocked> {
        let asked = target.authority();
        let blocked = |rule, reason, remedy| Blocked { rule, asked: asked.clone(), reason, remedy };
        if self.refuses(target.host(), target.port()) {
            let remedy = "do without it; the owner has decided".to_owned();
            return Err(blocked(Rule::DomainRefused, format!("the owner refused `{asked}` for this run"), remedy));
        }
        let of_host = || self.domains.iter().filter(|pattern| pattern.covers_host(target.host()));
        let mut covering = of_host().filter(|pattern| pattern.covers_port(target.port())).peekable();
        if covering.peek().is_some() {
            return Ok(if covering.any(Pattern::is_exact) { Grant::Exact } else { Grant::Wide });
        }
        let remedy = format!("ask the user for access to `{asked}`");
        if of_host().next().is_some() {
            let granted = listed(of_host().map(Pattern::to_string));
            let reason = format!("port {} of `{}` was not granted; granted: {granted}", target.port(), target.host());
            return Err(blocked(Rule::PortNotAllowed, reason, remedy));
        }
        let reason = if self.domains.is_empty() {
            format!("`{asked}` was not granted to this run; no domain was")
        } else {
            let granted = listed(self.domains.iter().map(Pattern::to_string));
            format!("`{asked}` was not granted to this run; granted: {granted}")
        };
        Err(blocked(Rule::DomainNotAllowed, reason, remedy))
    }

    /// Whether this host and port are granted by a pattern that names the host, and are not refused.
    pub(crate) fn names(&self, host: &Host, port: u16) -> bool {
        let is_named = |pattern: &Pattern| pattern.is_exact() && pattern.covers_host(host) && pattern.covers_port(port);
        self.domains.iter().any(is_named) && !self.refuses(host, port)
    }

    fn refuses(&self, host: &Host, port: u16) -> bool {
        let is_refused =
            |pattern: &Pattern| pattern.covers_host(host) && pattern.port().is_none_or(|refused| refused == port);
        self.refused.iter().any(is_refused)
    }

    /// Whether a run that has read from these sources may write to a target (SPEC TAINT-1).
    ///
    /// # Errors
    /// When it may not. The reason names the sources.
    pub fn decide_write(&self, target: &Target, write: &str, sources: &[WebSource]) -> Result<(), Blocked> {
        let approved = self.writes.iter().any(|pattern| pattern.covers(target));
        if sources.is_empty() || approved || self.tainted_write == TaintedWrite::Allow {
            return Ok(());
        }
        let asked = target.authority();
        let read = listed(sources.iter().map(|source| source.host.clone()));
        let reason =
            format!("{write} to `{asked}` is an outward write, and this run has read untrusted content from {read}");
        let remedy = match self.tainted_write {
            TaintedWrite::Ask | TaintedWrite::Allow => {
                format!("the owner allows it with `motor network allow {asked} --writes`")
            }
            TaintedWrite::Deny => "give the result back to the user instead of sending it".to_owned(),
        };
        Err(Blocked { rule: Rule::TaintedWrite, asked, reason, remedy })
    }
}

/// "`a`, `b` and 3 more".
fn listed(items: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    let mut count = 0_usize;
    for item in items {
        count += 1;
        if count <= MOST_NAMED {
            let comma = if count > 1 { ", " } else { "" };
            // Writing to a string cannot fail.
            write!(text, "{comma}`{item}`").unwrap_or_default();
        }
    }
    if count > MOST_NAMED {
        write!(text, " and {} more", count - MOST_NAMED).unwrap_or_default();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> Vec<Pattern> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn target(url: &str) -> Target {
        Target::parse(url).unwrap()
    }

    fn sources(hosts: &[&str]) -> Vec<WebSource> {
        hosts.iter().map(|host| WebSource { host: (*host).to_owned() }).collect()
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let policy = Policy {
            domains: patterns(&["api.example.com", "*.example.com", "*.example.org:8443", "127.0.0.1:8080"]),
            refused: patterns(&["bad.example.com", "half.example.com:443"]),
            ..Policy::default()
        };
        for (url, grant) in [
            ("https://api.example.com/", Grant::Exact),
            ("http://a.example.com/", Grant::Wide),
            ("https://a.example.org:8443/", Grant::Wide),
            ("http://127.0.0.1:8080/", Grant::Exact),
            ("http://half.example.com/", Grant::Wide),
        ] {
            assert_eq!(policy.decide(&target(url)), Ok(grant), "{url}");
        }
        for (url, rule, asked, says) in [
            ("https://bad.example.com/", Rule::DomainRefused, "bad.example.com", "the owner refused"),
            ("https://bad.example.com:99/", Rule::DomainRefused, "bad.example.com:99", "the owner refused"),
            ("https://half.example.com/", Rule::DomainRefused, "half.example.com", "the owner refused"),
            ("https://api.example.com:22/", Rule::PortNotAllowed, "api.example.com:22", "`*.example.com`"),
            ("https://a.example.org/", Rule::PortNotAllowed, "a.example.org", "`*.example.org:8443`"),
            ("http://127.0.0.1/", Rule::PortNotAllowed, "127.0.0.1", "`127.0.0.1:8080`"),
            ("https://example.com/", Rule::DomainNotAllowed, "example.com", "granted: `api.example.com`"),
            ("https://a.example.com.evil.org/", Rule::DomainNotAllowed, "a.example.com.evil.org", "granted"),
        ] {
            let blocked = policy.decide(&target(url)).expect_err(url);
            assert_eq!((blocked.rule, blocked.asked.as_str()), (rule, asked), "{url}");
            assert!(blocked.reason.contains(says), "{url}: {}", blocked.reason);
            let names_next_step = blocked.remedy == format!("ask the user for access to `{asked}`");
            assert_eq!(names_next_step, rule != Rule::DomainRefused, "{url}: {}", blocked.remedy);
        }
        let nothing = Policy::default().decide(&target("https://example.com/")).unwrap_err();
        assert_eq!(nothing.reason, "`example.com` was not granted to this run; no domain was");
    }

    #[test]
    fn what_would_be_granted_is_a_pattern() {
        for url in
            ["https://example.com/", "http://example.com:443/", "https://example.com:8443/", "http://[2001:db8::1]:81/"]
        {
            let blocked = Policy::default().decide(&target(url)).unwrap_err();
            let policy = Policy { domains: patterns(&[&blocked.asked]), ..Policy::default() };
            assert_eq!(policy.decide(&target(url)), Ok(Grant::Exact), "{url}");
        }
    }

    #[test]
    fn a_message_names_some_patterns_and_counts_the_rest() {
        let texts: Vec<String> = (0..20).map(|number| format!("h{number}.example.com")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let policy = Policy { domains: patterns(&texts), ..Policy::default() };
        let reason = policy.decide(&target("https://a.example/")).unwrap_err().reason;
        assert!(reason.ends_with("`h7.example.com` and 12 more"), "{reason}");
    }

    #[test]
    fn writes_after_reading_need_the_owner() {
        let to = target("https://sink.example.com/");
        let decide = |tainted_write, writes: &[&str], read: &[&str]| {
            let policy = Policy { writes: patterns(writes), tainted_write, ..Policy::default() };
            policy.decide_write(&to, "`POST`", &sources(read))
        };
        for (setting, writes, read) in [
            (TaintedWrite::Ask, &[][..], &[][..]),
            (TaintedWrite::Deny, &[], &[]),
            (TaintedWrite::Allow, &[], &["evil.example"]),
            (TaintedWrite::Ask, &["sink.example.com"], &["evil.example"]),
            (TaintedWrite::Deny, &["*.example.com"], &["evil.example"]),
        ] {
            assert_eq!(decide(setting, writes, read), Ok(()), "{setting:?} {writes:?} {read:?}");
        }
        for (setting, writes, remedy) in [
            (TaintedWrite::Ask, &[][..], "the owner allows it with `motor network allow sink.example.com --writes`"),
            (TaintedWrite::Ask, &["other.example.com", "sink.example.com:8443"], "the owner allows it"),
            (TaintedWrite::Deny, &[], "give the result back"),
        ] {
            let blocked = decide(setting, writes, &["evil.example", "b.example"]).unwrap_err();
            assert_eq!((blocked.rule, blocked.asked.as_str()), (Rule::TaintedWrite, "sink.example.com"));
            assert!(blocked.reason.contains("`POST` to `sink.example.com`"), "{}", blocked.reason);
            assert!(blocked.reason.ends_with("from `evil.example`, `b.example`"), "{}", blocked.reason);
            assert!(blocked.remedy.starts_with(remedy), "{}", blocked.remedy);
            assert!(setting == TaintedWrite::Ask || !blocked.remedy.contains("motor"));
        }
    }
}
