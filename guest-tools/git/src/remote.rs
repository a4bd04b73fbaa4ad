//! Remote repositories over smart HTTP: their references, and a push to them (SPEC LAND-7).
//!
//! It sends at most two requests by the caller's [`crate::Network`], and knows neither policy nor credentials. It survives
//! servers: every answer has a limit, a wrong one ends with a message, and text of a server is printed without control
//! characters.

mod advertisement;
mod named;
mod packet;
mod report;
mod transport;

use bstr::{BStr, ByteSlice as _};

use crate::error::Fault;
use crate::limits::MAX_REMOTE_TEXT_BYTES;

pub(crate) use advertisement::Advertisement;
pub(crate) use named::{Remote, default_name, is_configured, push_name};
pub(crate) use report::{Outcome, Report};
pub(crate) use transport::{Connection, Update};

/// The service of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    /// Takes pushes of clients.
    ReceivePack,
    /// Gives objects; only its list of references is read.
    UploadPack,
}

impl Service {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ReceivePack => "git-receive-pack",
            Self::UploadPack => "git-upload-pack",
        }
    }
}

/// Text of a server, of limited length and without characters that change a terminal.
pub(crate) fn foreign(text: &BStr) -> String {
    let text = text.get(..MAX_REMOTE_TEXT_BYTES).unwrap_or(text);
    let shown = text.to_str_lossy();
    shown.chars().map(|letter| if letter.is_control() && letter != '\t' { '?' } else { letter }).collect()
}

/// The fault of a line `ERR …`, with which a server ends.
fn remote_error(line: &BStr) -> Option<Fault> {
    let text = packet::without_end(line).strip_prefix(b"ERR ")?;
    Some(Fault::fatal(format_args!("remote error: {}", foreign(text.as_bstr()))))
}
