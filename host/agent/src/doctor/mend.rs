//! The safe mends of `motor doctor --fix`: permissions, missing directories, the leftovers of a host that was killed.
//!
//! It grants nothing, sends nothing and deletes no work. It survives a host that starts at the same time: leftovers are
//! touched only under the lock of the home.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use store::HomeLock;

use super::home::{TooOpen, too_open};
use super::{Check, Finding, Severity};
use crate::Home;

const FIX: Check = Check::new("fix", "fix");

/// Applies the safe mends to a home, and reports each, or why one failed. Empty if there was nothing to mend.
#[must_use]
pub fn mend(home: &Home) -> Vec<Finding> {
    let mut findings: Vec<_> = too_open(home).into_iter().map(close).collect();
    let missing: Vec<_> = home.directories().into_iter().filter(|path| !path.exists()).collect();
    if !missing.is_empty() {
        match home.create() {
            Ok(()) => {
                let made = missing.iter().map(|path| format!("made the directory {}", path.display()));
                findings.extend(made.map(|message| FIX.finding(Severity::Fixed, message, None)));
            }
            Err(refusal) => findings.push(FIX.refused(refusal, "motor doctor --home DIR")),
        }
    }
    let socket = home.socket();
    if fs::symlink_metadata(&socket).is_ok()
        && let Ok(_lock) = HomeLock::acquire(home.path())
    {
        findings.push(match fs::remove_file(&socket) {
            Ok(()) => {
                let message = format!("removed {}: the host that listened there has ended", socket.display());
                FIX.finding(Severity::Fixed, message, None)
            }
            Err(error) => FIX.problem(
                format!("{} cannot be removed: {error}", socket.display()),
                format!("rm -r {}", super::quoted(&socket.display().to_string())),
            ),
        });
    }
    findings
}

/// Takes away the permissions that others should not have.
fn close(TooOpen { path, mode, excess }: TooOpen) -> Finding {
    let wanted = mode & !excess;
    let shown = path.display();
    match fs::set_permissions(&path, fs::Permissions::from_mode(wanted)) {
        Ok(()) => {
            let more = match path.file_name().and_then(|name| name.to_str()) {
                Some("owner.token") => "; others may know the token: `motor owner rotate` makes a new one",
                _ => "",
            };
            let message = format!("set the permissions of {shown} from {mode:o} to {wanted:o}{more}");
            FIX.finding(Severity::Fixed, message, None)
        }
        Err(error) => FIX.problem(
            format!("the permissions of {shown} cannot be set: {error}"),
            format!("sudo chmod {wanted:o} {}", super::quoted(&shown.to_string())),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_whole_home_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::at(directory.path().join("home"));
        home.create().unwrap();
        assert_eq!(mend(&home), []);
    }

    #[test]
    fn permissions_directories_and_leftovers_are_mended_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::at(directory.path().join("home"));
        home.create().unwrap();
        let (token, work) = (home.config().join("owner.token"), home.runs().join("work"));
        fs::write(&token, "secret").unwrap();
        fs::write(&work, "work").unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
        fs::set_permissions(home.runs(), fs::Permissions::from_mode(0o777)).unwrap();
        fs::remove_dir(home.logs()).unwrap();
        fs::write(home.socket(), "").unwrap();
        let mended = mend(&home);
        assert!(mended.iter().all(|finding| finding.status == Severity::Fixed), "{mended:?}");
        assert_eq!(mended.len(), 4, "{mended:?}");
        assert_eq!((mode(&token), mode(&home.runs())), (0o600, 0o755));
        assert!(home.logs().is_dir() && !home.socket().exists());
        assert_eq!(
            (fs::read_to_string(token).unwrap(), fs::read_to_string(work).unwrap()),
            ("secret".into(), "work".into())
        );
        assert_eq!(mend(&home), []);
    }

    #[test]
    fn the_socket_of_a_host_that_runs_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::at(directory.path().join("home"));
        home.create().unwrap();
        let _host = HomeLock::acquire(home.path()).unwrap();
        fs::write(home.socket(), "").unwrap();
        assert_eq!(mend(&home), []);
        assert!(home.socket().exists());
    }

    #[test]
    fn a_link_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::at(directory.path().join("home"));
        home.create().unwrap();
        let precious = directory.path().join("precious");
        fs::write(&precious, "x").unwrap();
        fs::set_permissions(&precious, fs::Permissions::from_mode(0o666)).unwrap();
        std::os::unix::fs::symlink(&precious, home.config().join("owner.token")).unwrap();
        assert_eq!(mend(&home), []);
        assert_eq!(mode(&precious), 0o666);
    }
}
