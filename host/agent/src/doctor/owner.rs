//! The owner's token: present, for its owner alone, and the one that the host knows.

use consent::{FILE_NAME, FileState, OwnerStatus, OwnerToken, TokenFile};
use store::Store;

use super::{Check, Finding, Severity, restore};
use crate::Home;

const TOKEN: Check = Check::new("owner_token", "owner's token");

const VARIABLE: Check = Check::new("owner_token_variable", "owner's token");

/// The token of the environment variable `MOTOR_OWNER_TOKEN`, which commands use in place of the file.
#[must_use]
pub fn variable_finding(home: &Home, token: &str) -> Finding {
    match (OwnerToken::parse(token), TokenFile::read(&home.config())) {
        (None, _) => VARIABLE.problem("`MOTOR_OWNER_TOKEN` holds no token of an owner", "unset MOTOR_OWNER_TOKEN"),
        (Some(token), Ok(Some(file))) if token.hash() == file.hash() => VARIABLE.ok("`MOTOR_OWNER_TOKEN` holds it too"),
        (Some(_), Ok(Some(_))) => {
            let message =
                "`MOTOR_OWNER_TOKEN` is not the token of this home: commands that need your consent are refused";
            VARIABLE.problem(message, "unset MOTOR_OWNER_TOKEN")
        }
        (Some(_), _) => {
            let message = "`MOTOR_OWNER_TOKEN` is set, and there is no file to compare it with";
            VARIABLE.finding(Severity::Skipped, message, None)
        }
    }
}

/// The token of a home. Changes nothing: a token that is missing is made by the next host.
pub(super) fn token(home: &Home, store: &Store) -> Finding {
    match OwnerStatus::read(store, &home.config()) {
        Ok(status) => finding(&status, home),
        Err(error) => TOKEN.refused(error.into(), restore(home, "")),
    }
}

fn finding(status: &OwnerStatus, home: &Home) -> Finding {
    let file = format!("config/{FILE_NAME}");
    match (status.file, status.since, status.sealed) {
        (FileState::Good, _, true) => {
            TOKEN.ok(format!("`{file}` is sealed with a passphrase, and is the one that the host knows"))
        }
        (FileState::Good, ..) => TOKEN.ok(format!("`{file}` is in plain, and is the one that the host knows")),
        (FileState::Missing, None, _) => TOKEN.ok("the first host makes it"),
        (FileState::Missing, _, true) => {
            TOKEN.problem(format!("`{file}` is missing, and was sealed: you cannot consent"), restore(home, &file))
        }
        // A host makes a new one when it starts.
        (FileState::Missing, ..) => {
            let message =
                format!("`{file}` is missing: you cannot consent until a host starts, which makes a new token");
            TOKEN.problem(message, "motor owner status")
        }
        (FileState::Other, None, _) => TOKEN.ok(format!("`{file}` is there, and the first host takes it over")),
        (FileState::Other, ..) => TOKEN.problem(
            format!("`{file}` holds another token than the one that the host knows: you cannot consent"),
            restore(home, &file),
        ),
        _ => {
            let message =
                format!("`{file}` cannot be used: it has to be a file that only you can read, with the token in it");
            let is_open = super::home::too_open(home).iter().any(|open| open.path == home.config().join(FILE_NAME));
            TOKEN.problem(message, if is_open { "motor doctor --fix".to_owned() } else { restore(home, &file) })
        }
    }
}

#[cfg(test)]
mod tests {
    use base::Timestamp;

    use super::*;

    #[test]
    fn a_token_of_another_home_in_the_environment_is_a_problem_and_is_not_shown() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::at(directory.path().join("home"));
        home.create().unwrap();
        let (own, other) = (OwnerToken::random().unwrap(), OwnerToken::random().unwrap());
        assert_eq!(variable_finding(&home, own.expose()).status, Severity::Skipped);
        let file = TokenFile::plain(own.clone());
        store::create_file(&home.config(), FILE_NAME, file.text().expose().as_bytes()).unwrap();
        for (token, expected) in
            [(own.expose(), Severity::Ok), (other.expose(), Severity::Problem), ("secret", Severity::Problem)]
        {
            let finding = variable_finding(&home, token);
            assert_eq!(finding.status, expected, "{finding:?}");
            assert!(!finding.message.contains(token), "{finding:?}");
        }
    }

    #[test]
    fn each_state_of_the_token_has_one_way_out() {
        let home = Home::at("/h".into());
        let cp = "cp -a BACKUP/config/owner.token /h/config/owner.token";
        for (file, is_known, sealed, expected) in [
            (FileState::Good, true, false, None),
            (FileState::Good, true, true, None),
            (FileState::Missing, false, false, None),
            (FileState::Other, false, false, None),
            (FileState::Missing, true, false, Some("motor owner status")),
            (FileState::Missing, true, true, Some(cp)),
            (FileState::Other, true, false, Some(cp)),
            (FileState::Unusable, true, false, Some(cp)),
        ] {
            let since = is_known.then(|| Timestamp::from_millis(1));
            let finding = finding(&OwnerStatus { sealed, since, file, refused: 0 }, &home);
            assert_eq!(finding.fix.as_deref(), expected, "{finding:?}");
            assert_eq!(finding.status == Severity::Problem, expected.is_some(), "{finding:?}");
        }
    }
}
