//! The home directory: all files of one host (SPEC CONF-1).

use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::{fs, io};

use base::{Refusal, RefusalCode, RunId};
use store::{Links, first_special};

/// The largest file in a cache: compiled code is a few times its component, and an index of skills has 256 MiB.
const MAX_CACHED_BYTES: u64 = 1 << 30;

/// A home directory. Making one creates nothing; [`Home::create`] does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home(PathBuf);

impl Home {
    /// The home at `path`.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// The flag, otherwise `MOTOR_HOME`, otherwise `motor` in the XDG data directory.
    ///
    /// # Errors
    /// If none of them is set, nor `HOME`.
    pub fn locate(flag: Option<PathBuf>, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, Refusal> {
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        if let Some(path) = flag.or_else(|| env("MOTOR_HOME").map(PathBuf::from)) {
            return Ok(Self(absolute(path)));
        }
        // The XDG specification: a relative path there is ignored.
        let data = env("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let data = data.or_else(|| env("HOME").map(|home| PathBuf::from(home).join(".local/share")));
        data.map(|data| Self(data.join("motor"))).ok_or_else(|| {
            Refusal::new(
                RefusalCode::InvalidRequest,
                "there is no home directory: neither `MOTOR_HOME` nor `HOME` is set",
            )
            .with_remedy("pass `--home DIR`")
        })
    }

    /// Creates the missing parts of the directory, readable by their owner only. Existing parts are left as they are,
    /// and refused if others could write there: compiled code and state are loaded from it.
    ///
    /// # Errors
    /// If a directory cannot be made, or others own it or can write to it.
    pub fn create(&self) -> Result<(), Refusal> {
        let wrong = |directory: &Path, what: &str| {
            Refusal::new(RefusalCode::StorageFailed, format!("`{}` {what}", directory.display()))
                .with_remedy("pass another directory with `--home DIR` or `MOTOR_HOME`")
        };
        let make = || -> io::Result<()> {
            for directory in self.directories() {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            }
            Ok(())
        };
        make().map_err(|error| {
            Refusal::new(RefusalCode::StorageFailed, format!("cannot create the home `{}`: {error}", self.0.display()))
                .with_remedy("pass another directory with `--home DIR` or `MOTOR_HOME`")
        })?;
        for directory in self.own_directories() {
            check_owner(&directory).map_err(|problem| wrong(&directory, &problem))?;
        }
        clear_cache(&self.cache());
        Ok(())
    }

    /// The directories of the home that only its owner may write to.
    pub(crate) fn own_directories(&self) -> Vec<PathBuf> {
        vec![self.0.clone(), self.state(), self.runs(), self.logs(), self.config(), self.cache(), self.versions()]
    }

    /// All directories of the home. Other writers of those of skills and tools are the owner's business: a skill there
    /// is bound to its bytes.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        let mut all = self.own_directories();
        all.extend([self.skills(), self.tools()]);
        all
    }

    /// The cache of compiled code of an existing home.
    ///
    /// # Errors
    /// If others can write to it: compiled code is loaded from it.
    pub fn existing_cache(&self) -> Result<Option<PathBuf>, Refusal> {
        let cache = self.cache();
        if !cache.is_dir() {
            return Ok(None);
        }
        for directory in [&self.0, &cache] {
            check_owner(directory).map_err(|problem| {
                Refusal::new(RefusalCode::StorageFailed, format!("`{}` {problem}", directory.display()))
                    .with_remedy("pass another directory with `--home DIR` or `MOTOR_HOME`")
            })?;
        }
        clear_cache(&cache);
        Ok(Some(cache))
    }

    /// The directory for compiled code of commands that need no home: `motor` in the XDG cache directory. It is made
    /// for its owner only. `None` if there is no place for it.
    ///
    /// # Errors
    /// If it exists and others own it or can write to it: compiled code is loaded from it.
    pub fn user_cache(env: &dyn Fn(&str) -> Option<String>) -> Result<Option<PathBuf>, Refusal> {
        let absolute = |name| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
        let Some(directory) = cache.map(|cache| cache.join("motor")) else { return Ok(None) };
        if let Err(error) = fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory) {
            tracing::debug!(%error, directory = %directory.display(), "compiled code is not kept");
            return Ok(None);
        }
        if directory.is_symlink() {
            tracing::debug!(directory = %directory.display(), "compiled code is not kept behind a link");
            return Ok(None);
        }
        clear_cache(&directory);
        check_owner(&directory).map(|()| Some(directory.clone())).map_err(|problem| {
            Refusal::new(RefusalCode::StorageFailed, format!("the cache `{}` {problem}", directory.display()))
                .with_remedy("remove it, or name another directory in `XDG_CACHE_HOME`")
        })
    }

    /// Path of the home directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The socket that its host listens on.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.0.join("host.sock")
    }

    /// Directory of the database.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.0.join("state")
    }

    /// Parent of all run directories.
    #[must_use]
    pub fn runs(&self) -> PathBuf {
        self.0.join("runs")
    }

    /// Directory of one run.
    #[must_use]
    pub fn run(&self, id: &RunId) -> PathBuf {
        self.runs().join(id.as_str())
    }

    /// Workspace of one run.
    #[must_use]
    pub fn workspace(&self, id: &RunId) -> PathBuf {
        self.run(id).join("workspace")
    }

    /// Checks that the directories of a run are directories. A guest reaches everything its workspace leads to.
    ///
    /// # Errors
    /// If one was replaced by a link or another kind of file.
    pub(crate) fn check_workspace(&self, id: &RunId) -> Result<(), Refusal> {
        for path in [self.run(id), self.workspace(id)] {
            // A missing file is refused where it is opened.
            if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_dir()) {
                let reason = format!("`{}` is not a directory, and the host made one there", path.display());
                return Err(Refusal::new(RefusalCode::StateUnusable, reason)
                    .with_remedy(format!("put the directory back, or give the run up: `motor task cancel {id}`")));
            }
        }
        Ok(())
    }

    /// The output files of one run, once it is over.
    #[must_use]
    pub fn artifacts(&self, id: &RunId) -> PathBuf {
        self.run(id).join("artifacts")
    }

    /// The skills directory: new entries are noticed, and wait for the owner.
    #[must_use]
    pub fn skills(&self) -> PathBuf {
        self.0.join("skills")
    }

    /// The directory of tools: a component in it waits for the owner, and is then granted to runs by name.
    #[must_use]
    pub fn tools(&self) -> PathBuf {
        self.0.join("tools")
    }

    /// The reflectors that were dropped in: each is used only if its bytes are approved.
    #[must_use]
    pub fn reflectors(&self) -> PathBuf {
        self.0.join("reflectors")
    }

    /// Approved and earlier versions of skills, by content.
    #[must_use]
    pub fn versions(&self) -> PathBuf {
        self.0.join("versions")
    }

    /// The index of the skills directories: a cache.
    #[must_use]
    pub fn skill_index(&self) -> PathBuf {
        self.cache().join("skills.json")
    }

    /// Directory of the run traces.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.0.join("logs/motor-runs")
    }

    /// The trace of one run, as a file.
    #[must_use]
    pub fn trace_file(&self, id: &RunId) -> PathBuf {
        self.logs().join(format!("{id}.json"))
    }

    /// Directory of configuration files.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.0.join("config")
    }

    /// The default configuration file.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.config().join("motor.toml")
    }

    /// The public half of the key that signs receipts, once it exists.
    #[must_use]
    pub fn receipt_key(&self) -> PathBuf {
        self.config().join(crate::receipt::PUBLIC_KEY)
    }

    /// Engines of languages that are files beside the program, if the owner put some there.
    #[must_use]
    pub fn engines(&self) -> PathBuf {
        self.0.join("engines")
    }

    /// Data that can be made again: compiled code.
    #[must_use]
    pub fn cache(&self) -> PathBuf {
        self.0.join("cache")
    }
}

/// Removes special files from a cache: the engine would wait for a pipe, and read a device to its end.
fn clear_cache(directory: &Path) {
    while let Ok(Some((path, kind))) = first_special(directory, MAX_CACHED_BYTES, Links::Followed) {
        tracing::warn!(path = %path.display(), "removing {kind} from the cache");
        if let Err(error) = fs::remove_file(&path) {
            tracing::warn!(%error, path = %path.display(), "it cannot be removed");
            return;
        }
    }
}

/// Checks that only this user owns and writes to a directory; the error is the reason.
fn check_owner(directory: &Path) -> Result<(), String> {
    let metadata = fs::metadata(directory).map_err(|error| format!("cannot be read: {error}"))?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err("belongs to another user".to_owned());
    }
    if metadata.permissions().mode() & 0o022 != 0 {
        return Err("can be written by other users".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locate(flag: Option<&str>, variables: &[(&str, &str)]) -> Option<PathBuf> {
        let env = crate::env::of_list(variables);
        Home::locate(flag.map(PathBuf::from), &*env).ok().map(|home| home.0)
    }

    #[test]
    fn a_cache_that_others_can_write_to_is_not_used() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::locate(Some(directory.path().to_owned()), &*crate::env::of_list(&[])).unwrap();
        assert_eq!(home.existing_cache().unwrap(), None);
        fs::create_dir(home.cache()).unwrap();
        assert_eq!(home.existing_cache().unwrap(), Some(home.cache()));
        fs::set_permissions(home.cache(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(home.existing_cache().is_err());
    }

    #[test]
    fn the_flag_wins_then_the_variable_then_xdg() {
        let all = [("MOTOR_HOME", "/m"), ("XDG_DATA_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(locate(Some("/f"), &all), Some("/f".into()));
        assert_eq!(locate(None, &all), Some("/m".into()));
        assert_eq!(locate(None, &all[1..]), Some("/x/motor".into()));
        assert_eq!(locate(None, &[("XDG_DATA_HOME", "x"), ("HOME", "/h")]), Some("/h/.local/share/motor".into()));
        assert_eq!(locate(None, &[]), None);
    }

    #[test]
    fn a_home_is_its_owners_alone() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::at(directory.path().join("home"));
        home.create().unwrap();
        assert_eq!(fs::metadata(home.path()).unwrap().permissions().mode() & 0o777, 0o700);
        home.create().unwrap();
    }

    #[test]
    fn compiled_code_without_a_home_is_kept_where_only_its_owner_writes() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_str().unwrap();
        let cache = |variables: &[(&str, &str)]| Home::user_cache(&*crate::env::of_list(variables));
        let named = cache(&[("XDG_CACHE_HOME", root), ("HOME", "/nowhere")]).unwrap().unwrap();
        assert_eq!(named, directory.path().join("motor"));
        assert_eq!(fs::metadata(&named).unwrap().permissions().mode() & 0o777, 0o700);
        // The XDG specification: a relative path is ignored.
        let own = cache(&[("XDG_CACHE_HOME", "x"), ("HOME", root)]).unwrap();
        assert_eq!(own, Some(directory.path().join(".cache/motor")));
        assert_eq!(cache(&[]).unwrap(), None);
        assert_eq!(cache(&[("HOME", "/dev/null")]).unwrap(), None);
        fs::set_permissions(&named, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(cache(&[("XDG_CACHE_HOME", root)]).unwrap_err().reason.contains("written by other users"));
        // Root can give it away; for other users the root directory belongs to another user.
        let foreign =
            if std::os::unix::fs::chown(&named, Some(12_345), None).is_ok() { &named } else { Path::new("/") };
        assert_eq!(check_owner(foreign).unwrap_err(), "belongs to another user");
    }

    #[test]
    fn a_directory_that_others_write_to_is_no_home_and_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let shared = directory.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(Home::at(shared.clone()).create().unwrap_err().reason.contains("written by other users"));
        assert_eq!(fs::metadata(&shared).unwrap().permissions().mode() & 0o7777, 0o1777);
        // For comparison: one that others may only read is fine.
        let open = directory.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        Home::at(open).create().unwrap();
    }
}
