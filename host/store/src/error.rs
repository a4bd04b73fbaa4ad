//! Errors of the store. No message holds a host path or a stored value: they reach models and logs.

use std::io;
use std::sync::Arc;

use base::{Refusal, RefusalCode};

use crate::Table;

/// An error of the store. Cheap to clone: one failed sync answers every commit that waited for it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The state was written by a newer version.
    #[error("this home has state schema {found}, and this version of `motor` reads up to {supported}")]
    NewerSchema {
        /// The schema version of the home.
        found: u32,
        /// The newest schema version that this build reads.
        supported: u32,
    },
    /// The state directory is damaged or is something else.
    #[error("the state directory cannot be used: {detail}")]
    Corrupt {
        /// The problem in a few words.
        detail: String,
    },
    /// The state ends before the commit that its mark names: acknowledged commits are lost.
    #[error(
        "the state is incomplete: {}, and `{mark}` says that {marked} {} durable",
        if *found == 0 { "nothing is left of it".to_owned() } else { format!("it ends at commit {found}") },
        if *marked == 1 { "commit was" } else { "commits were" }
    )]
    Behind {
        /// The number of the last commit in the state; 0 if there is none.
        found: u64,
        /// The number of a commit that was acknowledged, usually the last.
        marked: u64,
        /// The name of the mark's file.
        mark: String,
    },
    /// The mark of the state cannot be used, so a loss would go unnoticed.
    #[error("the state cannot be checked for loss: `{mark}` beside it is {reason}")]
    Unmarked {
        /// The name of the mark's file.
        mark: String,
        /// The word `missing` or `damaged`.
        reason: &'static str,
    },
    /// Another process owns this home.
    #[error("another host owns this home{}", owner_pid.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    HomeInUse {
        /// The owner's process id, if it is known.
        owner_pid: Option<u32>,
    },
    /// A stored record cannot be read.
    #[error("the record `{key}` of table `{table}` cannot be used: {reason}")]
    Record {
        /// The table of the record.
        table: Table,
        /// Its key, with unprintable bytes escaped.
        key: String,
        /// The problem with the record.
        reason: String,
    },
    /// A value cannot be encoded as JSON.
    #[error("a value for table `{table}` cannot be stored")]
    Encode {
        /// The table it was meant for.
        table: Table,
        /// The encoder's error.
        #[source]
        source: Arc<serde_json::Error>,
    },
    /// A key is empty or too long.
    #[error("a key of table `{table}` has {bytes} bytes: 1 to 65535 are possible")]
    Key {
        /// The table it was meant for.
        table: Table,
        /// Length of the key in bytes.
        bytes: usize,
    },
    /// A record is too large.
    #[error("a record of table `{table}` has {bytes} bytes: at most {limit} are possible")]
    TooLarge {
        /// The table it was meant for.
        table: Table,
        /// Size of the record in bytes.
        bytes: usize,
        /// The largest size possible, in bytes.
        limit: usize,
    },
    /// The disk or the quota is full.
    #[error("the disk is full: nothing was stored, and nothing stored before was lost")]
    Full,
    /// The disk failed on this action.
    #[error("{action} failed")]
    Io {
        /// The action that failed, such as `writing the journal`.
        action: &'static str,
        /// The error of the operating system.
        #[source]
        source: Arc<io::Error>,
    },
    /// A write or sync failed before; whether its data reached the disk is unknown until the state is read again.
    #[error("storage failed earlier, so nothing more is stored until the host is started again")]
    Poisoned,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Maps an error of the operating system.
    pub(crate) fn io(action: &'static str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Io { action, source: Arc::new(source) },
        }
    }

    /// Maps an error of the storage engine.
    pub(crate) fn engine(action: &'static str, error: fjall::Error) -> Self {
        match error {
            fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source)) => Self::io(action, source),
            fjall::Error::Poisoned => Self::Poisoned,
            fjall::Error::Locked => Self::HomeInUse { owner_pid: None },
            fjall::Error::InvalidVersion(_) => Self::corrupt("its storage format is not one that this version reads"),
            fjall::Error::JournalRecovery(_) => Self::corrupt("its journal is damaged"),
            _ => Self::corrupt("its tables are damaged"),
        }
    }

    pub(crate) fn corrupt(detail: impl Into<String>) -> Self {
        Self::Corrupt { detail: detail.into() }
    }

    /// Whether the state itself is at fault: [`accept_loss`](crate::accept_loss) is the remedy.
    #[must_use]
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::Corrupt { .. } | Self::Record { .. } | Self::Behind { .. } | Self::Unmarked { .. })
    }

    fn code(&self) -> RefusalCode {
        match self {
            Self::NewerSchema { .. }
            | Self::Corrupt { .. }
            | Self::Record { .. }
            | Self::Behind { .. }
            | Self::Unmarked { .. } => RefusalCode::StateUnusable,
            Self::HomeInUse { .. } => RefusalCode::HomeInUse,
            Self::Full | Self::Io { .. } | Self::Poisoned => RefusalCode::StorageFailed,
            Self::Closed => RefusalCode::TryLater,
            Self::Encode { .. } | Self::Key { .. } | Self::TooLarge { .. } => RefusalCode::Failed,
        }
    }

    fn remedy(&self) -> Option<String> {
        Some(match self {
            Self::NewerSchema { .. } => "update `motor`, or use another directory with `--home`".to_owned(),
            Self::Corrupt { .. } | Self::Record { .. } | Self::Behind { .. } | Self::Unmarked { .. } => {
                "restore the home from a backup, or see the loss with `motor doctor` and go on without it with `motor \
                 doctor --accept-loss`"
                    .to_owned()
            }
            Self::HomeInUse { owner_pid: Some(pid) } => {
                format!("stop process {pid}, or use another directory with `--home`")
            }
            Self::HomeInUse { owner_pid: None } => {
                "stop the other host, or use another directory with `--home`".to_owned()
            }
            Self::Full => "free some space on the disk that holds the home, and ask again".to_owned(),
            Self::Io { .. } => "see to the disk that holds the home, then start the host again".to_owned(),
            Self::Poisoned => "start the host again".to_owned(),
            Self::Closed => "ask again when the host has started".to_owned(),
            Self::Encode { .. } | Self::Key { .. } | Self::TooLarge { .. } => return None,
        })
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let reason = match &error {
            StoreError::Io { source, .. } => format!("{error}: {source}"),
            _ => error.to_string(),
        };
        Self { code: error.code(), reason, remedy: error.remedy(), key: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_and_a_full_quota_are_told_apart_from_a_failing_disk() {
        for (errno, expected) in
            [(rustix::io::Errno::NOSPC, true), (rustix::io::Errno::DQUOT, true), (rustix::io::Errno::IO, false)]
        {
            let source = io::Error::from_raw_os_error(errno.raw_os_error());
            assert_eq!(matches!(StoreError::io("writing", source), StoreError::Full), expected, "{errno:?}");
        }
    }

    #[test]
    fn refusals_say_what_to_do() {
        let refusal = Refusal::from(StoreError::HomeInUse { owner_pid: Some(42) });
        assert_eq!(refusal.code, RefusalCode::HomeInUse);
        assert_eq!(refusal.reason, "another host owns this home (process 42)");
        assert_eq!(refusal.remedy.unwrap(), "stop process 42, or use another directory with `--home`");

        let refusal = Refusal::from(StoreError::NewerSchema { found: 7, supported: 1 });
        assert_eq!(refusal.code, RefusalCode::StateUnusable);
        assert_eq!(refusal.reason, "this home has state schema 7, and this version of `motor` reads up to 1");

        let failed = StoreError::io("writing the journal", io::Error::from_raw_os_error(5));
        let refusal = Refusal::from(failed);
        assert_eq!(refusal.code, RefusalCode::StorageFailed);
        assert!(refusal.reason.starts_with("writing the journal failed: "), "{}", refusal.reason);
    }
}
