//! CommandExit codes (SPEC CLI-0): the part of the command line that scripts depend on.

use std::process::ExitCode;

use base::RefusalCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum CommandExit {
    /// The command did its work.
    Ok = 0,
    /// It was tried and failed.
    Failed = 1,
    /// The request itself was wrong.
    Usage = 2,
    /// A credential is missing or was refused.
    Credentials = 4,
    /// The owner's consent is needed, or was denied.
    Consent = 5,
    /// Energy is too low.
    Energy = 6,
    /// Storage failed under this host, which ended: a supervisor starts it again (`EX_IOERR`).
    Storage = 74,
    /// Another process or run is at work: the same command may succeed later.
    TryLater = 75,
    /// Ended by a signal.
    Interrupted = 130,
}

impl From<RefusalCode> for CommandExit {
    fn from(code: RefusalCode) -> Self {
        match code {
            RefusalCode::InvalidRequest | RefusalCode::UnknownTool => Self::Usage,
            RefusalCode::CredentialsNeeded => Self::Credentials,
            RefusalCode::ConsentNeeded
            | RefusalCode::SkillUntrusted
            | RefusalCode::Unauthorized
            | RefusalCode::Forbidden => Self::Consent,
            RefusalCode::EnergyTooLow => Self::Energy,
            RefusalCode::Busy | RefusalCode::HomeInUse | RefusalCode::TryLater | RefusalCode::OutcomeUnknown => {
                Self::TryLater
            }
            _ => Self::Failed,
        }
    }
}

impl From<CommandExit> for ExitCode {
    fn from(exit: CommandExit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_the_documented_codes() {
        for (code, expected) in [
            (RefusalCode::InvalidRequest, 2),
            (RefusalCode::UnknownTool, 2),
            (RefusalCode::CredentialsNeeded, 4),
            (RefusalCode::ConsentNeeded, 5),
            (RefusalCode::SkillUntrusted, 5),
            (RefusalCode::EnergyTooLow, 6),
            (RefusalCode::Busy, 75),
            (RefusalCode::HomeInUse, 75),
            (RefusalCode::TryLater, 75),
            (RefusalCode::OutcomeUnknown, 75),
            (RefusalCode::NotFound, 1),
            (RefusalCode::ModelUnavailable, 1),
            (RefusalCode::StateUnusable, 1),
            (RefusalCode::StorageFailed, 1),
            (RefusalCode::InvalidComponent, 1),
            (RefusalCode::IllegalState, 1),
            (RefusalCode::Failed, 1),
        ] {
            assert_eq!(CommandExit::from(code) as u8, expected, "{code:?}");
        }
        assert_eq!((CommandExit::Ok as u8, CommandExit::Storage as u8, CommandExit::Interrupted as u8), (0, 74, 130));
    }
}
