//! The network policy of one run. Values only: a change is another policy, swapped in whole.
//!
//! The decisions here are functions of policy, target and the content read so far; they know no network and no clock.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::target::{Host, Target};
use crate::{
    AllowedShape, BlockReason, Excess, GivenValues, Nature, Pattern, Rule, Shape, TaintedWrite, Unit, WebSource,
};

/// When a run asks its owner about requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// Before each request of the run.
    EachRequest,
    /// After it has read from the web: about requests that write, carry a credential or carry much.
    AfterReading,
}

/// The network policy of one run. The default grants nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    /// The hosts that are granted.
    pub domains: Vec<Pattern>,
    /// The owner's shapes: requests that need no consent, independent of their data and of the content read so far.
    pub writes: Vec<Shape>,
    /// Requests that the owner consented to for the run.
    pub run: Vec<AllowedShape>,
    /// Hosts of which plain reads need no consent in a run that asks before every request.
    pub reads: Vec<Pattern>,
    /// Hosts that the owner refused. Stronger than `domains`.
    pub refused: Vec<Pattern>,
    /// The treatment of a request that needs consent because the run has read from the web.
    pub tainted_write: TaintedWrite,
    /// Whether the run asks before every request. Default false.
    pub asks_always: bool,
    /// Whether there is an owner to ask. Default true. Without one, reads with a credential need no consent, and every other
    /// request that does is refused.
    pub may_ask: bool,
    /// Whether a write that `writes` does not list is refused, also before the run has read anything. Default false.
    pub only_planned: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            domains: Vec::new(),
            writes: Vec::new(),
            run: Vec::new(),
            reads: Vec::new(),
            refused: Vec::new(),
            tainted_write: TaintedWrite::Ask,
            asks_always: false,
            may_ask: true,
            only_planned: false,
        }
    }
}

/// How a target was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// By a pattern that names the host.
    Exact,
    /// By a pattern that covers more. It leads to public addresses only.
    Wide,
}

/// The basis of a decision on a request, in addition to the policy.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The sources that the run has read from the web.
    pub sources: &'a [WebSource],
    /// The values that the run was given.
    pub given: &'a GivenValues,
    /// The bound that the request exceeds as a read that carries data.
    pub excess: Option<Excess>,
}

/// A request needs the owner's consent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needed {
    /// The refusal, unless a lease is for this request.
    pub blocked: BlockReason,
    /// The class of similar requests, when the owner can be asked.
    pub class: Option<Shape>,
}

/// Patterns and sources that a message names; more are counted.
const MAX_NAMED: usize = 8;

impl Policy {
    /// Whether a run may send requests to a target, by name. The address behind the name is checked later.
    ///
    /// # Errors
    /// If it may not: the rule, and the remedy.
    pub fn decide(&self, target: &Target) -> Result<Grant, BlockReason> {
        let asked = target.authority();
        let blocked = |rule, reason, remedy| BlockReason { rule, asked: asked.clone(), reason, remedy };
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

    /// The longest end of the host's name that a pattern fixes.
    pub(crate) fn fixed_end(&self, target: &Target) -> &str {
        let covering = self.domains.iter().filter(|pattern| pattern.covers(target));
        covering.map(Pattern::fixed_end).max_by_key(|end| end.len()).unwrap_or_default()
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

    /// Whether a request may be sent without the owner's consent to this very one (SPEC APPR-1, TAINT-1).
    ///
    /// # Errors
    /// If it may not: the rule, the reason and the remedy.
    pub fn decide_unit(&self, unit: &Unit, seen: &Seen<'_>) -> Result<(), Box<Needed>> {
        let nature = unit.nature();
        let guards = !seen.sources.is_empty() && self.tainted_write != TaintedWrite::Allow;
        if guards
            && nature != Nature::Write
            && let Some(excess) = seen.excess
            && !self.lets_data_out(unit, seen.given)
        {
            return Err(self.carried(unit, seen, excess));
        }
        if self.covering(unit, seen.given).next().is_some() {
            return Ok(());
        }
        if self.only_planned && nature == Nature::Write {
            return Err(self.unplanned(unit));
        }
        if guards && (nature == Nature::Write || (nature == Nature::KeyedRead && self.may_ask)) {
            return Err(self.tainted(unit, seen));
        }
        let is_consented_read =
            || nature == Nature::Read && self.reads.iter().any(|pattern| pattern.covers(&unit.target));
        if self.asks_always && !is_consented_read() {
            return Err(self.asked_always(unit));
        }
        Ok(())
    }

    /// When the owner may be asked about a request that `writes` does not list; `None`: never.
    #[must_use]
    pub fn asks(&self) -> Option<Asks> {
        match (self.may_ask, self.asks_always, self.tainted_write) {
            (true, true, _) => Some(Asks::EachRequest),
            (true, false, TaintedWrite::Ask) => Some(Asks::AfterReading),
            (true, false, TaintedWrite::Allow | TaintedWrite::Deny) | (false, ..) => None,
        }
    }

    /// Whether a write may be held until the owner sends it: unless it is refused without a question.
    ///
    /// # Errors
    /// If the owner's consent to this very request would not let it pass.
    pub(crate) fn decide_held(&self, unit: &Unit, seen: &Seen<'_>) -> Result<(), BlockReason> {
        // The owner is asked after the run, also if the run itself may not ask.
        let asking = Self { may_ask: true, ..self.clone() };
        match asking.decide_unit(unit, seen) {
            Err(needed) if needed.class.is_none() => Err(needed.blocked),
            _ => Ok(()),
        }
    }

    /// Whether the owner allowed a read to carry as much as it likes.
    pub(crate) fn lets_data_out(&self, unit: &Unit, given: &GivenValues) -> bool {
        self.covering(unit, given).any(Shape::lets_data_out)
    }

    /// The shapes that cover a request.
    fn covering<'a>(&'a self, unit: &'a Unit, given: &'a GivenValues) -> impl Iterator<Item = &'a Shape> {
        let of_run = self.run.iter().filter(|allowed| allowed.covers(unit, given));
        let of_owner = self.writes.iter().filter(|shape| shape.covers(unit));
        of_owner.chain(of_run.map(|allowed| &allowed.shape))
    }

    fn tainted(&self, unit: &Unit, seen: &Seen<'_>) -> Box<Needed> {
        let (method, asked) = (&unit.method, unit.target.authority());
        let request = match (unit.nature(), unit.credentials.first()) {
            (Nature::Write, _) => format!("`{method}` to `{asked}` is an outward write"),
            (_, Some(name)) => format!("`{method}` to `{asked}` carries the credential `{name}`"),
            (_, None) => format!("`{method}` to `{asked}` is by a run that has computed with a credential"),
        };
        let reason = format!("{request}, and this run has read untrusted content from {}", read(seen.sources));
        self.needed(unit, Rule::TaintedWrite, reason, unit.class(), None)
    }

    fn unplanned(&self, unit: &Unit) -> Box<Needed> {
        let asked = unit.target.authority();
        let reason = format!("`{}` to `{asked}` is an outward write, and the run's plan does not list it", unit.method);
        let remedy =
            "give the result back to the user instead of sending it; a new plan can list the request".to_owned();
        Box::new(Needed { blocked: BlockReason { rule: Rule::NotPlanned, asked, reason, remedy }, class: None })
    }

    fn carried(&self, unit: &Unit, seen: &Seen<'_>, excess: Excess) -> Box<Needed> {
        let Excess { bytes, most, setting } = excess;
        let reason = format!(
            "`{}` to `{}` carries {bytes} bytes that neither the user nor this host gave, {most} are allowed, and this run has \
             read untrusted content from {}",
            unit.method,
            unit.target.authority(),
            read(seen.sources)
        );
        self.needed(unit, Rule::CarriedData, reason, unit.carrying_class(), Some(setting))
    }

    fn asked_always(&self, unit: &Unit) -> Box<Needed> {
        let asked = unit.target.authority();
        let reason = format!("`{}` to `{asked}` needs consent: this run asks before every request", unit.method);
        self.needed(unit, Rule::ConsentNeeded, reason, unit.class(), None)
    }

    fn needed(
        &self,
        unit: &Unit,
        rule: Rule,
        reason: String,
        class: Option<Shape>,
        setting: Option<&str>,
    ) -> Box<Needed> {
        let is_denied = rule != Rule::ConsentNeeded && self.tainted_write == TaintedWrite::Deny;
        let remedy = match &class {
            _ if is_denied => "give the result back to the user instead of sending it".to_owned(),
            None if !unit.is_showable => {
                "write the credential as its placeholder, so that the request can be shown".to_owned()
            }
            None => {
                "send it so that every server reads it alike: a method in capitals, and a path without `//`, `.`, `..` \
                     and `*`"
                    .to_owned()
            }
            Some(class) => {
                let or = setting.map(|setting| format!(", or raises `{setting}` in `[network]`")).unwrap_or_default();
                format!("the owner allows it with `motor network allow {} --writes`{or}", quoted(class))
            }
        };
        let blocked = BlockReason { rule, asked: unit.target.authority(), reason, remedy };
        Box::new(Needed { blocked, class: class.filter(|_| self.may_ask && !is_denied) })
    }
}

fn read(sources: &[WebSource]) -> String {
    listed(sources.iter().map(|source| source.host.clone()))
}

/// A shape as one word of a shell's command.
fn quoted(shape: &Shape) -> String {
    format!("'{}'", shape.to_string().replace('\'', r"'\''"))
}

/// "`a`, `b` and 3 more".
fn listed(items: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    let mut count = 0_usize;
    for item in items {
        count += 1;
        if count <= MAX_NAMED {
            let comma = if count > 1 { ", " } else { "" };
            // Writing to a string cannot fail.
            write!(text, "{comma}`{item}`").unwrap_or_default();
        }
    }
    if count > MAX_NAMED {
        write!(text, " and {} more", count - MAX_NAMED).unwrap_or_default();
    }
    text
}
