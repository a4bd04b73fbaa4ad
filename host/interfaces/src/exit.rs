//! CommandExit codes (SPEC CLI-0): the part of the command line that scripts depend on.

use std::num::NonZeroU8;
use std::process::ExitCode;

use base::RefusalCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandExit {
    /// The command did its work.
    Ok,
    /// It was tried and failed.
    Failed,
    /// The request itself was wrong.
    Usage,
    /// A credential is missing or was refused.
    Credentials,
    /// The owner's consent is needed, or was denied.
    Consent,
    /// Energy is too low.
    Energy,
    /// A cap on the money spent on models is reached, or cannot be measured.
    Spend,
    /// Storage failed under this host, which ended: a supervisor starts it again (`EX_IOERR`).
    Storage,
    /// Another process or run is at work: the same command may succeed later.
    TryLater,
    /// Ended by a signal.
    Interrupted,
    /// A command component that `motor call` ran ended with this status, which is not 0.
    Component(NonZeroU8),
}

impl CommandExit {
    /// The exit code of the process.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Credentials => 4,
            Self::Consent => 5,
            Self::Energy => 6,
            Self::Spend => 7,
            Self::Storage => 74,
            Self::TryLater => 75,
            Self::Interrupted => 130,
            Self::Component(status) => status.get(),
        }
    }

    /// The exit of a component with this status, as far as a process can pass it on: 1 to 255, and 1 for any other failure.
    #[must_use]
    pub fn of_component(status: i32) -> Self {
        match u8::try_from(status) {
            Ok(status) => NonZeroU8::new(status).map_or(Self::Ok, Self::Component),
            Err(_) => Self::Failed,
        }
    }
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
            RefusalCode::SpendCapReached | RefusalCode::PriceUnknown => Self::Spend,
            RefusalCode::Busy | RefusalCode::HomeInUse | RefusalCode::TryLater | RefusalCode::OutcomeUnknown => {
                Self::TryLater
            }
            _ => Self::Failed,
        }
    }
}

impl From<CommandExit> for ExitCode {
    fn from(exit: CommandExit) -> Self {
        Self::from(exit.code())
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
            (RefusalCode::SpendCapReached, 7),
            (RefusalCode::PriceUnknown, 7),
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
            assert_eq!(CommandExit::from(code).code(), expected, "{code:?}");
        }
        let others = [CommandExit::Ok, CommandExit::Storage, CommandExit::Interrupted].map(CommandExit::code);
        assert_eq!(others, [0, 74, 130]);
    }

    #[test]
    fn the_status_of_a_component_is_passed_on_where_a_process_can() {
        for (status, code) in [(0, 0), (1, 1), (3, 3), (75, 75), (255, 255), (256, 1), (-1, 1), (i32::MIN, 1)] {
            assert_eq!(CommandExit::of_component(status).code(), code, "{status}");
        }
    }
}
