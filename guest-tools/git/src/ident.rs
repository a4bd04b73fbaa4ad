//! Who commits, and when.

use std::time::{SystemTime, UNIX_EPOCH};

use bstr::{BString, ByteSlice as _};
use gix_date::Time;

use crate::error::{Fault, Result};
use crate::repository::Repository;

/// The identity of commits where nothing is configured.
const DEFAULT: (&str, &str) = ("motor run", "run@motor.invalid");

/// A name, an address and a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signature {
    pub name: BString,
    pub email: BString,
    pub time: Time,
}

impl Signature {
    /// Reads a line of a commit. Damaged parts of it are left empty.
    pub(crate) fn parse(line: &[u8]) -> Self {
        let (who, when) = line.rsplit_once_str("> ").unwrap_or((line, b""));
        let (name, email) = who.split_once_str("<").unwrap_or((who, b""));
        let when = std::str::from_utf8(when).unwrap_or_default();
        Self {
            name: name.trim().into(),
            email: email.trim_end_with(|letter| letter == '>').trim().into(),
            time: gix_date::parse_header(when).unwrap_or_default(),
        }
    }

    /// As it stands in a commit.
    pub(crate) fn line(&self) -> BString {
        let mut time = Vec::new();
        // Writing into memory does not fail.
        let _written = self.time.write_to(&mut time).is_ok();
        [self.name.as_bytes(), b" <", self.email.as_bytes(), b"> ", &time].concat().into()
    }

    /// The author of a new commit.
    pub(crate) fn author(repository: &Repository) -> Result<Self> {
        Self::of(repository, "AUTHOR")
    }

    /// The committer of a new commit.
    pub(crate) fn committer(repository: &Repository) -> Result<Self> {
        Self::of(repository, "COMMITTER")
    }

    fn of(repository: &Repository, role: &str) -> Result<Self> {
        let variable = |part: &str| {
            let value = repository.variable(&format!("GIT_{role}_{part}"))?;
            (!value.trim().is_empty()).then(|| BString::from(value))
        };
        let section = role.to_ascii_lowercase();
        let configured = |key: &str| {
            let own = repository.config.string(&format!("{section}.{key}"));
            own.or_else(|| repository.config.string(&format!("user.{key}"))).filter(|value| !value.trim().is_empty())
        };
        let name = variable("NAME").or_else(|| configured("name")).unwrap_or_else(|| DEFAULT.0.into());
        let email = variable("EMAIL").or_else(|| configured("email")).unwrap_or_else(|| DEFAULT.1.into());
        let time = match variable("DATE") {
            Some(date) => parse_date(&date.to_str_lossy(), repository.now)?,
            None => now(repository.now),
        };
        Ok(Self { name: clean(&name), email: clean(&email), time })
    }
}

/// A name without the bytes that would end it in a commit.
pub(crate) fn clean(name: &[u8]) -> BString {
    let kept: Vec<u8> = name.bytes().filter(|byte| !matches!(byte, b'<' | b'>' | b'\n' | 0)).collect();
    kept.trim_with(|letter| letter.is_whitespace() || ".,:;'\"\\".contains(letter)).into()
}

/// A date of the command line or the environment.
pub(crate) fn parse_date(text: &str, now: SystemTime) -> Result<Time> {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = jiff::Timestamp::new(i64::try_from(since.as_secs()).unwrap_or(0), 0)
        .map(|time| time.to_zoned(jiff::tz::TimeZone::UTC))
        .map_err(Fault::fatal)?;
    gix_date::parse(text.trim(), Some(now)).map_err(|_| Fault::fatal(format_args!("invalid date format: {text}")))
}

/// A moment in UTC, which is the zone of the sandbox.
pub(crate) fn now(time: SystemTime) -> Time {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::new(i64::try_from(since.as_secs()).unwrap_or(0), 0)
}
