//! The server's report on a push: the outcome for each reference, and the messages of its hooks (gitprotocol-pack(5)).

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice as _};

use super::packet::{Packet, Packets, without_end};
use super::{foreign, remote_error};
use crate::error::{Fault, Result};
use crate::limits::MAX_PUSHED_REFERENCES;

/// Lines of messages that are printed.
const MAX_MESSAGE_LINES: usize = 200;

/// The outcome for one reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Changed,
    Refused(String),
}

/// The report on one push.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Why the objects were not taken, if they were not.
    pub unpack_error: Option<String>,
    pub outcomes: BTreeMap<BString, Outcome>,
    /// Lines for standard error, without `remote: `.
    pub messages: Vec<String>,
}

impl Report {
    /// Reads the answer, in bands if that was asked for.
    pub(super) fn parse(bytes: &[u8], is_banded: bool) -> Result<Self> {
        let mut report = Self::default();
        if !is_banded {
            report.read(bytes)?;
            return Ok(report);
        }
        let (mut inner, mut text) = (Vec::new(), Vec::new());
        let mut packets = Packets::new(bytes);
        while let Some(Packet::Line(line)) = packets.next()? {
            match line.split_first() {
                Some((1, data)) => inner.extend_from_slice(data),
                Some((2, data)) => text.extend_from_slice(data),
                Some((3, data)) => {
                    return Err(Fault::fatal(format_args!("remote error: {}", foreign(data.trim_end().as_bstr()))));
                }
                _ => return Err(remote_error(line).unwrap_or_else(|| bad("a line of the report is in no band"))),
            }
        }
        let lines = text.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_end);
        let lines = lines.filter(|line| !line.is_empty()).take(MAX_MESSAGE_LINES);
        report.messages.extend(lines.map(|line| foreign(line.as_bstr())));
        report.read(&inner)?;
        Ok(report)
    }

    fn read(&mut self, bytes: &[u8]) -> Result<()> {
        let mut packets = Packets::new(bytes);
        match packets.next()? {
            Some(Packet::Line(line)) => match without_end(line).strip_prefix(b"unpack ") {
                Some(b"ok") => {}
                Some(reason) => self.unpack_error = Some(foreign(reason.as_bstr())),
                None => {
                    return Err(remote_error(line).unwrap_or_else(|| bad("the report does not begin with `unpack`")));
                }
            },
            _ => return Err(bad("the report is empty")),
        }
        while let Some(Packet::Line(line)) = packets.next()? {
            let (name, outcome) =
                status(without_end(line)).ok_or_else(|| bad("a line of the report cannot be read"))?;
            self.outcomes.insert(name.to_owned(), outcome);
            if self.outcomes.len() > MAX_PUSHED_REFERENCES {
                return Err(bad("the report names more references than were sent"));
            }
        }
        Ok(())
    }
}

/// `ok NAME` or `ng NAME REASON`.
fn status(line: &BStr) -> Option<(&BStr, Outcome)> {
    if let Some(name) = line.strip_prefix(b"ok ") {
        return Some((name.as_bstr(), Outcome::Changed));
    }
    let (name, reason) = line.strip_prefix(b"ng ")?.split_once_str(" ")?;
    Some((name.as_bstr(), Outcome::Refused(foreign(reason.as_bstr()))))
}

fn bad(reason: &str) -> Fault {
    Fault::protocol(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::packet::push_line;

    fn lines(lines: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        lines.iter().for_each(|line| push_line(&mut bytes, line).unwrap());
        bytes.extend_from_slice(b"0000");
        bytes
    }

    #[test]
    fn reports_are_read() {
        let inner = lines(&[b"unpack ok\n", b"ok refs/heads/a\n", b"ng refs/heads/b not \x1b[2J today\n"]);
        let plain = Report::parse(&inner, false).unwrap();
        assert_eq!(plain.outcomes[BStr::new("refs/heads/a")], Outcome::Changed);
        assert_eq!(plain.outcomes[BStr::new("refs/heads/b")], Outcome::Refused("not ?[2J today".to_owned()));
        // In pieces, with messages between them.
        let (one, other) = inner.split_at(20);
        let banded = lines(&[
            &[b"\x01", one].concat(),
            b"\x02first\nsec",
            &[b"\x01", other].concat(),
            b"\x02ond \x1b[31m\rthird\n\n",
        ]);
        let banded = Report::parse(&banded, true).unwrap();
        assert_eq!((&banded.outcomes, banded.unpack_error), (&plain.outcomes, None));
        assert_eq!(banded.messages, ["first", "second ?[31m", "third"]);
        let failed = Report::parse(&lines(&[b"unpack index-pack failed\n"]), false).unwrap();
        assert_eq!(failed.unpack_error.as_deref(), Some("index-pack failed"));
    }

    #[test]
    fn hostile_reports_are_refused() {
        for (bytes, is_banded) in [
            (&b""[..], false),
            (b"0000", false),
            (b"", true),
            (b"0005\x04", true),
            (b"0004", true),
            (b"0010unp", false),
            (&lines(&[b"\x01zzzz"]), true),
            (&lines(&[b"ok refs/heads/a"]), false),
            (&lines(&[b"unpack ok", b"perhaps refs/heads/a"]), false),
            (&lines(&[b"unpack ok", b"ng refs/heads/a"]), false),
        ] {
            assert!(Report::parse(bytes, is_banded).is_err(), "{:?}", bytes.as_bstr());
        }
        let fault = Report::parse(&lines(&[b"\x03out of \x07disk\n"]), true).unwrap_err();
        assert_eq!(fault.message, "fatal: remote error: out of ?disk");
        let many: Vec<String> = (0..2_000).map(|number| format!("ok refs/heads/{number}")).collect();
        let mut bytes = vec![&b"unpack ok"[..]];
        bytes.extend(many.iter().map(String::as_bytes));
        assert!(Report::parse(&lines(&bytes), false).is_err());
    }
}
