//! Commits as text: git's named formats and those with placeholders.

use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice as _};
use gix_date::Time;
use gix_date::time::format;
use gix_hash::ObjectId;

use super::tracking::short_name;
use crate::describe::Short;
use crate::error::{Fault, Result};
use crate::history::Commit;
use crate::ident::Signature;
use crate::repository::{Repository, read_patterns};

/// A form that commits are printed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pretty {
    Oneline,
    Short,
    Medium,
    Full,
    Fuller,
    Reference,
    Raw,
    /// Placeholders; whether a line end follows each commit instead of standing between them.
    Custom(String, bool),
}

/// How dates are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DateForm {
    Default,
    Iso,
    IsoStrict,
    Rfc,
    Short,
    Raw,
    Unix,
    Relative,
}

/// Prints commits in the chosen format.
pub(super) struct Printer<'a> {
    pub repository: &'a Repository,
    pub pretty: Pretty,
    pub dates: DateForm,
    pub short: Short<'a>,
    /// Whether ids are short: `--abbrev-commit`.
    pub abbreviated: bool,
    /// The references that lead to a commit; empty unless asked for.
    pub decorations: HashMap<ObjectId, Vec<String>>,
    pub mailmap: gix_mailmap::Snapshot,
}

impl Pretty {
    pub(super) fn parse(name: &str) -> Result<Self> {
        Ok(match name {
            "oneline" => Self::Oneline,
            "short" => Self::Short,
            "medium" => Self::Medium,
            "full" => Self::Full,
            "fuller" => Self::Fuller,
            "reference" => Self::Reference,
            "raw" => Self::Raw,
            _ => match name.split_once(':') {
                Some(("format", text)) => Self::Custom(text.to_owned(), false),
                Some(("tformat", text)) => Self::Custom(text.to_owned(), true),
                _ if name.is_empty() || name.contains('%') => Self::Custom(name.to_owned(), true),
                _ => return Err(Fault::fatal(format_args!("invalid --pretty format: {name}"))),
            },
        })
    }

    /// Whether each commit ends with its own line end, so that none stands between two.
    pub(super) fn ends_itself(&self) -> bool {
        matches!(self, Self::Oneline | Self::Reference | Self::Custom(_, true))
    }
}

impl DateForm {
    pub(super) fn parse(name: &str) -> Result<Self> {
        Ok(match name {
            "default" => Self::Default,
            "iso" | "iso8601" => Self::Iso,
            "iso-strict" | "iso8601-strict" => Self::IsoStrict,
            "rfc" | "rfc2822" => Self::Rfc,
            "short" => Self::Short,
            "raw" => Self::Raw,
            "unix" => Self::Unix,
            "relative" => Self::Relative,
            _ => return Err(Fault::unsupported(format_args!("the date format `{name}`"))),
        })
    }
}

/// The map of names at the top of the working tree.
pub(super) fn mailmap(repository: &Repository) -> Result<gix_mailmap::Snapshot> {
    let bytes = read_patterns(&repository.worktree.join(".mailmap"))?.unwrap_or_default();
    Ok(gix_mailmap::Snapshot::from_bytes(&bytes))
}

/// The references that lead to commits, in git's order.
pub(super) fn decorations(repository: &Repository) -> Result<HashMap<ObjectId, Vec<String>>> {
    let head = repository.refs.head()?;
    let mut found: HashMap<ObjectId, Vec<String>> = HashMap::new();
    if let Some(id) = head.id {
        let text = head.short().map_or("HEAD".to_owned(), |branch| format!("HEAD -> {branch}"));
        found.entry(id).or_default().push(text);
    }
    for (name, id) in repository.refs.below("refs/")?.iter().rev() {
        if Some(name) == head.branch.as_ref() {
            continue;
        }
        let Ok(id) = crate::revision::peel(repository, *id) else { continue };
        let tag = if name.starts_with(b"refs/tags/") { "tag: " } else { "" };
        found.entry(id).or_default().push(format!("{tag}{}", short_name(name.as_bstr())));
    }
    Ok(found)
}

impl Printer<'_> {
    /// A commit's text, with its line end unless the form has none.
    pub(super) fn print(&self, commit: &Commit) -> Result<BString> {
        let hex = if self.abbreviated { self.short.of(&commit.id)? } else { commit.id.to_string() };
        let decoration = match self.decorations.get(&commit.id) {
            Some(names) => format!(" ({})", names.join(", ")),
            None => String::new(),
        };
        let mut text = BString::default();
        match &self.pretty {
            Pretty::Oneline => return Ok(format!("{hex}{decoration} {}\n", commit.subject()).into()),
            Pretty::Reference => {
                let date = self.date(commit.author.time, DateForm::Short);
                return Ok(format!("{} ({}, {date})\n", self.short.of(&commit.id)?, commit.subject()).into());
            }
            Pretty::Custom(form, terminated) => {
                self.custom(form, commit, &mut text)?;
                if *terminated && !form.is_empty() {
                    text.push(b'\n');
                }
                return Ok(text);
            }
            _ => {}
        }
        text.extend_from_slice(format!("commit {hex}{decoration}\n").as_bytes());
        if self.pretty == Pretty::Raw {
            text.extend_from_slice(format!("tree {}\n", commit.tree).as_bytes());
            for parent in &commit.parents {
                text.extend_from_slice(format!("parent {parent}\n").as_bytes());
            }
            for (role, who) in [("author", &commit.author), ("committer", &commit.committer)] {
                text.extend_from_slice(format!("{role} {}\n", who.line()).as_bytes());
            }
        } else {
            self.people(commit, &mut text)?;
        }
        self.message(commit, &mut text);
        Ok(text)
    }

    fn people(&self, commit: &Commit, text: &mut BString) -> Result<()> {
        if commit.parents.len() > 1 {
            text.extend_from_slice(b"Merge:");
            for parent in &commit.parents {
                text.extend_from_slice(format!(" {}", self.short.of(parent)?).as_bytes());
            }
            text.push(b'\n');
        }
        let line = |title: &str, value: &BStr| format!("{title}{value}\n");
        let who = |who: &Signature| {
            let (name, email) = self.mapped(who);
            BString::from(format!("{name} <{email}>"))
        };
        let (author, committer) = (who(&commit.author), who(&commit.committer));
        let date = |time: Time| BString::from(self.date(time, self.dates));
        let lines = match self.pretty {
            Pretty::Short => line("Author: ", author.as_bstr()),
            Pretty::Full => line("Author: ", author.as_bstr()) + &line("Commit: ", committer.as_bstr()),
            Pretty::Fuller => {
                line("Author:     ", author.as_bstr())
                    + &line("AuthorDate: ", date(commit.author.time).as_bstr())
                    + &line("Commit:     ", committer.as_bstr())
                    + &line("CommitDate: ", date(commit.committer.time).as_bstr())
            }
            _ => line("Author: ", author.as_bstr()) + &line("Date:   ", date(commit.author.time).as_bstr()),
        };
        text.extend_from_slice(lines.as_bytes());
        Ok(())
    }

    fn message(&self, commit: &Commit, text: &mut BString) {
        let mut lines = Vec::new();
        for line in commit.message.lines() {
            let line = line.trim_end();
            if line.is_empty() && (lines.is_empty() || self.pretty == Pretty::Short) {
                if lines.is_empty() {
                    continue;
                }
                break;
            }
            lines.push(line);
        }
        while lines.last().is_some_and(|line| line.is_empty()) {
            lines.pop();
        }
        if !lines.is_empty() {
            text.push(b'\n');
        }
        for line in lines {
            text.extend_from_slice(b"    ");
            text.extend_from_slice(line);
            text.push(b'\n');
        }
    }

    /// A name and an address as the mailmap has them.
    pub(super) fn mapped(&self, who: &Signature) -> (BString, BString) {
        let reference =
            gix_actor::SignatureRef { name: who.name.as_bstr(), email: who.email.as_bstr(), time: "0 +0000" };
        match self.mailmap.try_resolve_ref(reference) {
            Some(known) => (
                known.name.map_or(who.name.clone(), ToOwned::to_owned),
                known.email.map_or(who.email.clone(), ToOwned::to_owned),
            ),
            None => (who.name.clone(), who.email.clone()),
        }
    }

    /// A date in a form.
    pub(super) fn date(&self, time: Time, form: DateForm) -> String {
        match form {
            DateForm::Default => time.format_or_unix(format::DEFAULT),
            DateForm::Iso => time.format_or_unix(format::ISO8601),
            DateForm::IsoStrict if time.offset == 0 => {
                time.format_or_unix(format::ISO8601_STRICT).replace("+00:00", "Z")
            }
            DateForm::IsoStrict => time.format_or_unix(format::ISO8601_STRICT),
            DateForm::Rfc => time.format_or_unix(format::GIT_RFC2822),
            DateForm::Short => time.format_or_unix(format::SHORT),
            DateForm::Raw => time.format_or_unix(format::RAW),
            DateForm::Unix => time.seconds.to_string(),
            DateForm::Relative => relative(crate::ident::now(self.repository.now).seconds.saturating_sub(time.seconds)),
        }
    }

    fn custom(&self, form: &str, commit: &Commit, text: &mut BString) -> Result<()> {
        let mut rest = form;
        while let Some(percent) = rest.find('%') {
            text.extend_from_slice(rest.get(..percent).unwrap_or_default().as_bytes());
            let after = rest.get(percent.saturating_add(1)..).unwrap_or_default();
            let used = self.placeholder(after, commit, text)?;
            if used == 0 {
                text.push(b'%');
            }
            rest = after.get(used..).unwrap_or_default();
        }
        text.extend_from_slice(rest.as_bytes());
        Ok(())
    }

    /// Prints one placeholder and returns how many bytes of the format it takes; none for one that is not known.
    fn placeholder(&self, form: &str, commit: &Commit, text: &mut BString) -> Result<usize> {
        let parents = |short: bool| -> Result<String> {
            let names: Result<Vec<String>> =
                commit.parents.iter().map(|id| if short { self.short.of(id) } else { Ok(id.to_string()) }).collect();
            Ok(names?.join(" "))
        };
        let names = || self.decorations.get(&commit.id).map(|names| names.join(", "));
        if let Some(hex) = form.strip_prefix('x').and_then(|rest| rest.get(..2))
            && let Ok(byte) = u8::from_str_radix(hex, 16)
        {
            text.push(byte);
            return Ok(3);
        }
        // Colours are for terminals.
        if form.starts_with("C(") {
            return Ok(form.find(')').map_or(0, |end| end.saturating_add(1)));
        }
        for colour in ["Cred", "Cgreen", "Cblue", "Creset"] {
            if form.starts_with(colour) {
                return Ok(colour.len());
            }
        }
        let mut letters = form.chars();
        let (Some(first), second) = (letters.next(), letters.next()) else { return Ok(0) };
        let value: BString = match first {
            'H' => commit.id.to_string().into(),
            'h' => self.short.of(&commit.id)?.into(),
            'T' => commit.tree.to_string().into(),
            't' => self.short.of(&commit.tree)?.into(),
            'P' => parents(false)?.into(),
            'p' => parents(true)?.into(),
            's' => commit.subject(),
            'b' => body(commit),
            'B' => {
                let message = commit.message.trim_end_with(|letter| letter == '\n');
                if message.is_empty() { BString::default() } else { [message, b"\n"].concat().into() }
            }
            'f' => sanitized(commit.subject().as_bstr()).into(),
            'n' => "\n".into(),
            '%' => "%".into(),
            'd' => names().map_or(String::new(), |names| format!(" ({names})")).into(),
            'D' => names().unwrap_or_default().into(),
            'e' => commit.encoding.clone().unwrap_or_default(),
            'm' => ">".into(),
            'a' | 'c' => {
                let who = if first == 'a' { &commit.author } else { &commit.committer };
                let Some(value) = second.and_then(|letter| self.person(letter, who)) else { return Ok(0) };
                text.extend_from_slice(&value);
                return Ok(2);
            }
            _ => return Ok(0),
        };
        text.extend_from_slice(&value);
        Ok(first.len_utf8())
    }

    fn person(&self, letter: char, who: &Signature) -> Option<BString> {
        let date = |form| Some(BString::from(self.date(who.time, form)));
        let mapped = || self.mapped(who);
        match letter {
            'n' => Some(who.name.clone()),
            'N' => Some(mapped().0),
            'e' => Some(who.email.clone()),
            'E' => Some(mapped().1),
            'l' => Some(who.email.split_once_str("@").map_or(who.email.as_bytes(), |(local, _)| local).into()),
            'd' => date(self.dates),
            'D' => date(DateForm::Rfc),
            'r' => date(DateForm::Relative),
            't' => date(DateForm::Unix),
            'i' => date(DateForm::Iso),
            'I' => date(DateForm::IsoStrict),
            's' => date(DateForm::Short),
            _ => None,
        }
    }
}

fn body(commit: &Commit) -> BString {
    let body = commit.body();
    let trimmed = body.trim_end_with(|letter| letter == '\n');
    if trimmed.is_empty() { BString::default() } else { [trimmed, b"\n"].concat().into() }
}

/// A subject as a file's name.
fn sanitized(subject: &BStr) -> String {
    let mut name = String::new();
    for letter in subject.chars() {
        match letter {
            letter if letter.is_ascii_alphanumeric() || letter == '_' => name.push(letter),
            '.' if !name.ends_with('.') => name.push('.'),
            '.' => {}
            _ if !name.ends_with('-') && !name.is_empty() => name.push('-'),
            _ => {}
        }
    }
    name.trim_end_matches(['.', '-']).to_owned()
}

/// A time span as git says it.
fn relative(seconds: i64) -> String {
    if seconds < 0 {
        return "in the future".to_owned();
    }
    let say = |count: i64, unit: &str| format!("{count} {unit}{} ago", if count == 1 { "" } else { "s" });
    if seconds < 90 {
        return say(seconds, "second");
    }
    let minutes = (seconds + 30) / 60;
    if minutes < 90 {
        return say(minutes, "minute");
    }
    let hours = (minutes + 30) / 60;
    if hours < 36 {
        return say(hours, "hour");
    }
    let days = (hours + 12) / 24;
    match days {
        ..14 => say(days, "day"),
        14..70 => say((days + 3) / 7, "week"),
        70..365 => say((days + 15) / 30, "month"),
        365..1825 => {
            let months = (days * 12 * 2 + 365) / (365 * 2);
            let (years, months) = (months / 12, months % 12);
            let year = format!("{years} year{}", if years == 1 { "" } else { "s" });
            if months == 0 { format!("{year} ago") } else { format!("{year}, {}", say(months, "month")) }
        }
        _ => say((days + 183) / 365, "year"),
    }
}
