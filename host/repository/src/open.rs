//! Finding and opening the repository of a directory.

use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice as _;
use gix::discover::upwards;
use gix::open::permissions::{Attributes, Config, Environment};
use gix::open::{Options, Permissions};
use gix::sec::trust::Mapping;
use gix::sec::{Permission, Trust};

use crate::error::{CommitError, Result, shown};

/// A repository with a working tree, and a directory in it.
pub struct Repository {
    pub(crate) repo: gix::Repository,
    /// The canonical path of the directory.
    pub(crate) directory: PathBuf,
    /// The canonical path of the working tree.
    pub(crate) root: PathBuf,
    /// The directory's path in the working tree; empty if it is the whole.
    pub(crate) prefix: String,
}

impl std::fmt::Debug for Repository {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Repository").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Repository {
    /// Opens the repository that the directory lies in.
    ///
    /// # Errors
    /// If the directory is in no repository, or in one of another user, or in one of a form that cannot be written.
    pub fn open(directory: &Path) -> Result<Self> {
        let missing = || CommitError::NoRepository(shown(directory));
        let directory = directory.canonicalize().map_err(|_| missing())?;
        let found = gix::ThreadSafeRepository::discover_opts(
            &directory,
            upwards::Options { trust: upwards::TrustPolicy::Required(Trust::Full), ..upwards::Options::default() },
            Mapping { full: options(), reduced: options() },
        );
        let repo = match found {
            Ok(found) => found.to_thread_local(),
            Err(error) => return Err(refused(error, &directory)),
        };
        let Some(root) = repo.workdir() else { return Err(missing()) };
        let root = root.canonicalize().map_err(|_| missing())?;
        // Another directory can be configured as the working tree.
        let Ok(below) = directory.strip_prefix(&root) else { return Err(missing()) };
        if below.iter().any(|name| name.eq_ignore_ascii_case(".git")) {
            return Err(missing());
        }
        let prefix = below.to_str().ok_or_else(|| CommitError::Path(shown(below)))?.to_owned();
        // The library would not find the references of another form.
        if repo.config_snapshot().string("extensions.refStorage").is_some_and(|form| form.as_bstr() != "files") {
            return Err(CommitError::Unsupported("keeps its references in another form than files"));
        }
        if repo.object_hash() != gix::hash::Kind::Sha1 {
            return Err(CommitError::Unsupported("has objects of SHA-256"));
        }
        Ok(Self { repo, directory, root, prefix })
    }

    /// The path in the working tree of a path below the directory.
    #[must_use]
    pub fn path(&self, below: &str) -> String {
        if self.prefix.is_empty() { below.to_owned() } else { format!("{}/{below}", self.prefix) }
    }

    /// Whether both are one repository with one working tree.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.repo.git_dir() == other.repo.git_dir()
    }
}

/// The configuration of the owner and of the system is read, and nothing else outside the repository: no variables such as
/// `GIT_DIR`, and the program `git` is not asked where its configuration is.
fn options() -> Options {
    let env = Environment { home: Permission::Allow, xdg_config_home: Permission::Allow, ..Environment::isolated() };
    let config = Config { git_binary: false, system: true, git: true, user: true, env: false, includes: true };
    Options::default().permissions(Permissions { env, config, attributes: Attributes::isolated() })
}

fn refused(error: gix::Error, directory: &Path) -> CommitError {
    if let Some(found) = error.downcast_any_ref::<upwards::Error>() {
        return match found {
            upwards::Error::NoTrustedGitRepository { .. } => CommitError::Foreign(shown(directory)),
            _ => CommitError::NoRepository(shown(directory)),
        };
    }
    CommitError::failed("the git repository cannot be opened")(error)
}
