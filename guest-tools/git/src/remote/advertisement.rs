//! The references that a server advertises, and its capabilities (gitprotocol-http(5), gitprotocol-pack(5)).
//!
//! It survives servers: names that are not references, names twice, lines out of order, lists without an end.

use std::collections::{BTreeMap, HashSet};

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;

use super::packet::{Packet, Packets, without_end};
use super::{Service, remote_error};
use crate::error::{Fault, Result};
use crate::limits::MAX_REFERENCES;

/// Stands in the place of a name where a server has no references.
const NO_REFERENCES: &[u8] = b"capabilities^{}";

/// The end of the name of a line that tells the object that a tag leads to.
const PEELED: &[u8] = b"^{}";

/// The answer of `info/refs`.
#[derive(Debug, Default)]
pub(crate) struct Advertisement {
    /// The references in the order they came, with peeled tags (`^{}`).
    pub listed: Vec<(BString, ObjectId)>,
    /// The references by name, without peeled tags.
    pub references: BTreeMap<BString, ObjectId>,
    /// Objects that the server has without a reference of their own (`.have`).
    pub others: Vec<ObjectId>,
    capabilities: HashSet<BString>,
}

impl Advertisement {
    pub(super) fn parse(bytes: &[u8], service: Service) -> Result<Self> {
        let mut packets = Packets::new(bytes);
        let first = packets.next()?.ok_or_else(|| bad("the answer is empty"))?;
        let announced = format!("# service={}", service.name());
        match first {
            Packet::Line(line) if without_end(line) == announced => {}
            Packet::Line(line) => return Err(remote_error(line).unwrap_or_else(|| bad("the service is not announced"))),
            Packet::Flush => return Err(bad("the service is not announced")),
        }
        if packets.next()? != Some(Packet::Flush) {
            return Err(bad("the announcement of the service has no end"));
        }
        let mut found = Self::default();
        let mut is_first = true;
        loop {
            match packets.next()? {
                None => return Err(bad("the list of references breaks off")),
                Some(Packet::Flush) => return Ok(found),
                Some(Packet::Line(line)) => found.line(without_end(line), std::mem::take(&mut is_first))?,
            }
        }
    }

    fn line(&mut self, line: &BStr, is_first: bool) -> Result<()> {
        if let Some(fault) = remote_error(line) {
            return Err(fault);
        }
        if is_first && line.starts_with(b"version ") {
            return Err(bad("the server answers in another version of the protocol than 0"));
        }
        let reference = match line.split_once_str("\0") {
            Some((reference, capabilities)) if is_first => {
                self.capabilities.extend(capabilities.fields().map(BString::from));
                self.check_format()?;
                reference
            }
            Some(_) => return Err(bad("a reference has a zero byte in its name")),
            None => line,
        };
        // A shallow commit of the server: its history ends there.
        if reference.starts_with(b"shallow ") {
            return Ok(());
        }
        let (hex, name) = reference.split_once_str(" ").ok_or_else(|| bad("a line is not a reference"))?;
        let id = ObjectId::from_hex(hex).map_err(|_| bad("a reference has no object"))?;
        if name == NO_REFERENCES && id.is_null() {
            return Ok(());
        }
        if self.listed.len().saturating_add(self.others.len()) >= MAX_REFERENCES {
            return Err(Fault::limit(format_args!("the server has more than {MAX_REFERENCES} references")));
        }
        if name == b".have" {
            self.others.push(id);
            return Ok(());
        }
        let peeled = name.strip_suffix(PEELED);
        if gix_validate::reference::name(peeled.unwrap_or(name).as_bstr()).is_err() {
            return Err(bad("a reference has a name that is not valid"));
        }
        if peeled.is_none() && self.references.insert(name.into(), id).is_some() {
            return Err(bad("a reference is listed twice"));
        }
        self.listed.push((name.into(), id));
        Ok(())
    }

    fn check_format(&self) -> Result<()> {
        let format = self.capabilities.iter().find_map(|capability| capability.strip_prefix(b"object-format="));
        match format {
            Some(format) if format != b"sha1" => Err(Fault::unsupported(format_args!(
                "a remote repository with the object format `{}`; only SHA-1 is written",
                super::foreign(format.as_bstr())
            ))),
            _ => Ok(()),
        }
    }

    pub(crate) fn has(&self, capability: &str) -> bool {
        self.capabilities.contains(BStr::new(capability))
    }
}

fn bad(reason: &str) -> Fault {
    Fault::protocol(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::packet::push_line;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const NONE: &str = "0000000000000000000000000000000000000000";

    /// An advertisement: `-` is a flush, anything else a line.
    fn parse(lines: &[&str]) -> Result<Advertisement> {
        let mut bytes = Vec::new();
        for line in lines {
            match *line {
                "-" => bytes.extend_from_slice(b"0000"),
                line => push_line(&mut bytes, line.replace("ONE", ONE).replace("NONE", NONE).as_bytes()).unwrap(),
            }
        }
        Advertisement::parse(&bytes, Service::ReceivePack)
    }

    #[test]
    fn references_and_capabilities_are_read() {
        let service = "# service=git-receive-pack\n";
        let found = parse(&[
            service,
            "-",
            "ONE refs/heads/main\0report-status delete-refs object-format=sha1\n",
            "ONE refs/tags/v1\n",
            "ONE refs/tags/v1^{}",
            "ONE .have\n",
            "shallow ONE\n",
            "-",
        ])
        .unwrap();
        assert_eq!(found.references.len(), 2);
        assert_eq!((found.listed.len(), found.others.len()), (3, 1));
        assert!(found.has("delete-refs") && !found.has("atomic"));
        let empty = parse(&[service, "-", &format!("{NONE} capabilities^{{}}\0atomic\n"), "-"]).unwrap();
        assert!(empty.references.is_empty() && empty.has("atomic"));
    }

    #[test]
    fn hostile_lists_are_refused() {
        let service = "# service=git-receive-pack\n";
        for (lines, reason) in [
            (&[][..], "the answer is empty"),
            (&["-"], "not announced"),
            (&["# service=git-upload-pack\n", "-", "-"], "not announced"),
            (&[service], "no end"),
            (&[service, "-"], "breaks off"),
            (&[service, "-", "ONE refs/heads/main\n"], "breaks off"),
            (&[service, "-", "ONE refs/heads/../../x\n", "-"], "not valid"),
            (&[service, "-", "ONE -x\u{1b}[2J\n", "-"], "not valid"),
            (&[service, "-", "ONE refs/heads/a\n", "ONE refs/heads/a\n", "-"], "twice"),
            (&[service, "-", "ONE refs/heads/a\n", "ONE refs/heads/b\0x\n", "-"], "zero byte"),
            (&[service, "-", "1 refs/heads/a\n", "-"], "no object"),
            (&[service, "-", "nothing\n", "-"], "not a reference"),
            (&[service, "-", "version 1\n", "-"], "another version"),
            (&[service, "-", "ONE refs/heads/a\0object-format=sha256\n", "-"], "only SHA-1"),
            (&[service, "-", "ERR no such \u{1b}[31mrepository\n", "-"], "remote error: no such ?[31mrepository"),
        ] {
            let fault = parse(lines).unwrap_err();
            assert!(fault.code == 128 && fault.message.contains(reason), "{lines:?}: {}", fault.message);
        }
    }
}
