//! The home's directory and the permissions in it. Reads no state, so that it works also while a host runs.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;

use super::{Check, Finding, quoted};
use crate::Home;

const HOME: Check = Check::new("home", "home");
const PERMISSIONS: Check = Check::new("permissions", "permissions");
/// Files of the directory `config` that hold a secret: with permissions for others they are not used.
const SECRETS: [&str; 3] = ["owner.token", "credentials.key", "receipt.key"];

/// A file or directory with permissions that it should not have.
#[derive(Debug)]
pub(super) struct TooOpen {
    pub path: PathBuf,
    /// The permission bits as they are now.
    pub mode: u32,
    /// The bits to take away.
    pub excess: u32,
}

/// Examines the directory of the home, and the permissions of the parts that only its owner may use.
#[must_use]
pub fn home_findings(home: &Home) -> Vec<Finding> {
    let path = home.path().display().to_string();
    let elsewhere = || "motor doctor --home DIR".to_owned();
    match fs::metadata(home.path()) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return vec![HOME.problem(format!("{path} is not a directory"), elsewhere())],
        Err(_) => return vec![HOME.ok(format!("{path} will be made by the first command that needs it"))],
    }
    let home_finding = match tempfile::tempfile_in(home.path()) {
        Ok(_) => HOME.ok(format!("{path} is there and can be written")),
        Err(error) => {
            let fix = format!("chown -R \"$USER\" {}", quoted(&path));
            HOME.problem(format!("{path} cannot be written: {error}"), fix)
        }
    };
    let mut findings = vec![home_finding];
    let open = too_open(home);
    if open.is_empty() {
        findings.push(PERMISSIONS.ok("only you can write to the home, and only you can read its secrets"));
    }
    for TooOpen { path, mode, excess } in open {
        let what = if excess & 0o044 != 0 { "read or written" } else { "written" };
        let message = format!("{} can be {what} by other users (mode {mode:o})", path.display());
        findings.push(PERMISSIONS.problem(message, "motor doctor --fix"));
    }
    findings
}

/// The directories and secrets of the home, as far as they are its owner's, that others can use.
pub(super) fn too_open(home: &Home) -> Vec<TooOpen> {
    let directories = home.own_directories().into_iter().map(|path| (path, 0o022));
    let secrets = SECRETS.iter().map(|name| (home.config().join(name), 0o077));
    let own = rustix::process::geteuid().as_raw();
    let judged = directories.chain(secrets).filter_map(|(path, forbidden)| {
        // A link is followed by no mend: its target may be anywhere.
        let found = fs::symlink_metadata(&path).ok().filter(|found| found.is_dir() || found.is_file())?;
        let mode = found.permissions().mode() & 0o7777;
        let excess = mode & forbidden;
        (excess != 0 && found.uid() == own).then_some(TooOpen { path, mode, excess })
    });
    judged.collect()
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;

    #[test]
    fn a_secret_or_a_directory_that_others_can_use_is_a_problem() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::at(directory.path().join("home"));
        assert_eq!(home_findings(&home).len(), 1, "a home that is not there is no problem");
        home.create().unwrap();
        let token = home.config().join("owner.token");
        fs::write(&token, "x").unwrap();
        let set = |path: &std::path::Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        set(&token, 0o600);
        let statuses = || home_findings(&home).iter().map(|finding| finding.status).collect::<Vec<_>>();
        assert_eq!(statuses(), [Severity::Ok, Severity::Ok]);
        set(&token, 0o640);
        set(&home.runs(), 0o775);
        assert_eq!(statuses(), [Severity::Ok, Severity::Problem, Severity::Problem]);
        assert!(
            home_findings(&home).iter().skip(1).all(|finding| finding.fix.as_deref() == Some("motor doctor --fix"))
        );
        // Others may read the directory of skills, and a directory of the home.
        set(&token, 0o600);
        set(&home.runs(), 0o755);
        set(&home.skills(), 0o777);
        assert_eq!(statuses(), [Severity::Ok, Severity::Ok]);
    }
}
