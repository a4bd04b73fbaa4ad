//! `wasi:filesystem` below `/workspace`: one directory, or a copy-on-write layer over several, with a quota.
//!
//! Path resolution inside the directory is wasmtime-wasi's (cap-std's: no `..`, no symlink leads out). This view adds a
//! limit on bytes and files, so that a guest cannot fill the owner's disk, and refuses links, so that a workspace
//! cannot later lead other readers out of it. Usage is measured when the call first writes, and every byte written in
//! the call counts: overwriting gives nothing back before the next call.

mod descriptor;
mod layered;
mod quota;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use layer::{Call, Layer};
use wasmtime::component::{HasData, Resource, ResourceTable};
use wasmtime_wasi::filesystem::{Dir, OpenMode, WasiFilesystemCtx, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Descriptor, DirectoryEntry, DirectoryEntryStream, ErrorCode, Host, HostDirectoryEntryStream,
};
use wasmtime_wasi::p2::{DynOutputStream, FsError, FsResult};
use wasmtime_wasi::{FsPerms, WasiCtx};

pub use quota::{Quota, QuotaUsage};

use layered::{Layered, Opened};

/// The path under which guests see the directory.
pub const GUEST_PATH: &str = "/workspace";

/// Access of a call to the workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// Read files, but change nothing.
    #[default]
    ReadOnly,
    /// Read and write within the quota.
    ReadWrite,
}

/// The files behind `/workspace`.
#[derive(Clone)]
pub enum Workspace {
    /// One directory of the host.
    Directory(PathBuf),
    /// Directories of the owner, seen through a layer that keeps changes in `directory` (SPEC LAND-1).
    Layered {
        /// The layer of the run.
        layer: Arc<Layer>,
        /// The call that changes are noted under.
        call: WorkspaceCall,
        /// The directory that the quota is measured in.
        directory: PathBuf,
    },
}

impl From<PathBuf> for Workspace {
    fn from(directory: PathBuf) -> Self {
        Self::Directory(directory)
    }
}

/// A call as the layer notes it.
pub type WorkspaceCall = Call;

/// Settings and state of one call's file system. The default has no directory.
#[derive(Default)]
pub struct WorkspaceCtx {
    filesystem: WasiFilesystemCtx,
    quota: Quota,
    listings: u64,
    layered: Option<Layered>,
    is_open: bool,
}

/// Directory listings that a call may have open: each holds all names of its directory in the host's memory.
const MAX_LISTINGS: u64 = 16;

impl WorkspaceCtx {
    /// Opens `workspace` as `/workspace`, with at most `most` in its directory. Operations on its files block the thread of
    /// the call, which must be one that may block.
    ///
    /// # Errors
    /// If the directory cannot be opened.
    pub fn open(workspace: &Workspace, access: Access, most: QuotaUsage) -> wasmtime::Result<Self> {
        let directory = match workspace {
            Workspace::Directory(directory) | Workspace::Layered { directory, .. } => directory,
        };
        let permissions = match access {
            Access::ReadOnly => FsPerms::ReadOnly,
            Access::ReadWrite => FsPerms::ReadWrite,
        };
        let mut wasi = WasiCtx::builder();
        let mut wasi =
            wasi.allow_blocking_current_thread(true).preopened_dir(directory, GUEST_PATH, permissions)?.build();
        let filesystem = std::mem::take(wasi.filesystem());
        let layered = match workspace {
            Workspace::Directory(_) => None,
            Workspace::Layered { layer, call, .. } => {
                // It is never read: a layered directory answers by its path.
                let placeholder = Dir::new(File::open(directory)?, permissions, OpenMode::READ, true);
                Some(Layered::new(layer.clone(), call.clone(), access, placeholder))
            }
        };
        Ok(Self { filesystem, quota: Quota::new(directory, most), listings: 0, layered, is_open: true })
    }

    /// The quota of the call.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.quota.clone()
    }

    /// The same files, with the quota of the call that this one belongs to: both write into it.
    #[must_use]
    pub fn within(self, quota: Quota) -> Self {
        Self { quota, ..self }
    }

    /// Whether there are files.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_open
    }
}

/// The view that implements the host traits.
pub struct WorkspaceView<'a> {
    /// Settings and state of the file system.
    pub ctx: &'a mut WorkspaceCtx,
    /// The handles of the call.
    pub table: &'a mut ResourceTable,
}

/// Marks stores that have a [`WorkspaceCtx`].
pub struct HasWorkspace;

impl HasData for HasWorkspace {
    type Data<'a> = WorkspaceView<'a>;
}

impl WorkspaceView<'_> {
    fn inner(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView { ctx: &mut self.ctx.filesystem, table: self.table }
    }

    /// Makes a guest's writes to a stream count against the quota.
    fn meter(&mut self, stream: Resource<DynOutputStream>) -> FsResult<Resource<DynOutputStream>> {
        let inner = self.table.delete(stream).map_err(FsError::trap)?;
        let metered: DynOutputStream = Box::new(self.ctx.quota.meter(inner));
        self.table.push(metered).map_err(FsError::trap)
    }

    fn spend_file(&mut self) -> FsResult<()> {
        self.ctx.quota.spend_file().map_err(FsError::trap)
    }

    fn spend_bytes(&mut self, bytes: u64) -> FsResult<()> {
        self.ctx.quota.spend_bytes(bytes).map_err(FsError::trap)
    }
}

impl preopens::Host for WorkspaceView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let directories = preopens::Host::get_directories(&mut self.inner())?;
        if let Some(layered) = &mut self.ctx.layered {
            directories.iter().for_each(|(fd, _)| layered.opened(fd.rep(), Opened::Directory(String::new())));
        }
        Ok(directories)
    }
}

impl Host for WorkspaceView<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        self.inner().convert_error_code(error)
    }

    fn filesystem_error_code(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<Option<ErrorCode>> {
        self.inner().filesystem_error_code(error)
    }
}

impl HostDirectoryEntryStream for WorkspaceView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        match &mut self.ctx.layered {
            Some(layered) => Ok(layered.next_entry(stream.rep())),
            None => self.inner().read_directory_entry(stream).await,
        }
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.ctx.listings = self.ctx.listings.saturating_sub(1);
        if let Some(layered) = &mut self.ctx.layered {
            layered.listed(stream.rep());
        }
        HostDirectoryEntryStream::drop(&mut self.inner(), stream)
    }
}
