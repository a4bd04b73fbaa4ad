//! `wasi:filesystem` over one directory, `/workspace`, with a quota.
//!
//! Path resolution inside the directory is wasmtime-wasi's (cap-std's: no `..`, no symlink leads out). This view adds a
//! limit on bytes and files, so that a guest cannot fill the owner's disk, and refuses links, so that a workspace
//! cannot later lead other readers out of it. Usage is measured when the call first writes, and every byte written in
//! the call counts: overwriting gives nothing back before the next call.

mod quota;

use std::path::Path;

use wasmtime::component::{HasData, Resource, ResourceTable};
use wasmtime_wasi::filesystem::{WasiFilesystemCtx, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, DirectoryEntryStream,
    ErrorCode, Filesize, Host, HostDescriptor, HostDirectoryEntryStream, MetadataHashValue, NewTimestamp, OpenFlags,
    PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};
use wasmtime_wasi::{FsPerms, WasiCtx};

pub use quota::{Quota, QuotaUsage};

use crate::{Limit, LimitExceeded};

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

/// Settings and state of one call's file system. The default has no directory.
#[derive(Default)]
pub struct WorkspaceCtx {
    filesystem: WasiFilesystemCtx,
    quota: Quota,
    listings: u64,
}

/// Directory listings that a call may have open: each holds all names of its directory in the host's memory.
const MAX_LISTINGS: u64 = 16;

impl WorkspaceCtx {
    /// Opens `directory` as `/workspace`.
    ///
    /// # Errors
    /// If the directory cannot be opened.
    pub fn open(directory: &Path, access: Access, quota: Quota) -> wasmtime::Result<Self> {
        let permissions = match access {
            Access::ReadOnly => FsPerms::ReadOnly,
            Access::ReadWrite => FsPerms::ReadWrite,
        };
        let mut wasi: WasiCtx = WasiCtx::builder().preopened_dir(directory, GUEST_PATH, permissions)?.build();
        Ok(Self { filesystem: std::mem::take(wasi.filesystem()), quota, listings: 0 })
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
        preopens::Host::get_directories(&mut self.inner())
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

impl HostDescriptor for WorkspaceView<'_> {
    async fn write(&mut self, fd: Resource<Descriptor>, bytes: Vec<u8>, offset: Filesize) -> FsResult<Filesize> {
        // A write far beyond the end makes a file as long as its offset says.
        let size = self.inner().stat(Resource::new_borrow(fd.rep())).await?.size;
        let grown = offset.saturating_add(bytes.len() as u64).saturating_sub(size);
        self.spend_bytes(grown.max(bytes.len() as u64))?;
        self.inner().write(fd, bytes, offset).await
    }

    async fn set_size(&mut self, fd: Resource<Descriptor>, size: Filesize) -> FsResult<()> {
        let before = self.inner().stat(Resource::new_borrow(fd.rep())).await?.size;
        self.spend_bytes(size.saturating_sub(before))?;
        self.inner().set_size(fd, size).await
    }

    fn write_via_stream(&mut self, fd: Resource<Descriptor>, offset: Filesize) -> FsResult<Resource<DynOutputStream>> {
        // A gap before the first byte is part of the file's length; it is charged as if it had been written.
        self.spend_bytes(offset)?;
        let stream = self.inner().write_via_stream(fd, offset)?;
        self.meter(stream)
    }

    fn append_via_stream(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.inner().append_via_stream(fd)?;
        self.meter(stream)
    }

    async fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        if open_flags.contains(OpenFlags::CREATE) {
            let directory = Resource::new_borrow(fd.rep());
            if self.inner().stat_at(directory, path_flags, path.clone()).await.is_err() {
                self.spend_file()?;
            }
        }
        self.inner().open_at(fd, path_flags, path, open_flags, flags).await
    }

    async fn create_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.spend_file()?;
        self.inner().create_directory_at(fd, path).await
    }

    async fn link_at(
        &mut self,
        _: Resource<Descriptor>,
        _: PathFlags,
        _: String,
        _: Resource<Descriptor>,
        _: String,
    ) -> FsResult<()> {
        Err(ErrorCode::NotPermitted.into())
    }

    async fn symlink_at(&mut self, _: Resource<Descriptor>, _: String, _: String) -> FsResult<()> {
        Err(ErrorCode::NotPermitted.into())
    }

    // Everything below is wasmtime-wasi's, unchanged.

    async fn advise(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
        len: Filesize,
        advice: Advice,
    ) -> FsResult<()> {
        self.inner().advise(fd, offset, len, advice).await
    }

    async fn sync_data(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.inner().sync_data(fd).await
    }

    async fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        self.inner().get_flags(fd).await
    }

    async fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        self.inner().get_type(fd).await
    }

    async fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        self.inner().set_times(fd, accessed, modified).await
    }

    async fn read(&mut self, fd: Resource<Descriptor>, len: Filesize, offset: Filesize) -> FsResult<(Vec<u8>, bool)> {
        self.inner().read(fd, len, offset).await
    }

    async fn read_directory(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DirectoryEntryStream>> {
        if self.ctx.listings >= MAX_LISTINGS {
            return Err(FsError::trap(LimitExceeded { limit: Limit::Handles, value: MAX_LISTINGS }));
        }
        let listing = self.inner().read_directory(fd).await?;
        self.ctx.listings += 1;
        Ok(listing)
    }

    async fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.inner().sync(fd).await
    }

    async fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        self.inner().stat(fd).await
    }

    async fn stat_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        self.inner().stat_at(fd, path_flags, path).await
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        self.inner().set_times_at(fd, path_flags, path, accessed, modified).await
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        HostDescriptor::drop(&mut self.inner(), fd)
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        self.inner().readlink_at(fd, path).await
    }

    async fn remove_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.inner().remove_directory_at(fd, path).await
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        old_path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        self.inner().rename_at(fd, old_path, new_fd, new_path).await
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.inner().unlink_file_at(fd, path).await
    }

    fn read_via_stream(&mut self, fd: Resource<Descriptor>, offset: Filesize) -> FsResult<Resource<DynInputStream>> {
        self.inner().read_via_stream(fd, offset)
    }

    async fn is_same_object(&mut self, a: Resource<Descriptor>, b: Resource<Descriptor>) -> wasmtime::Result<bool> {
        self.inner().is_same_object(a, b).await
    }

    async fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        self.inner().metadata_hash(fd).await
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        self.inner().metadata_hash_at(fd, path_flags, path).await
    }
}

impl HostDirectoryEntryStream for WorkspaceView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<types::DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        self.inner().read_directory_entry(stream).await
    }

    fn drop(&mut self, stream: Resource<types::DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.ctx.listings = self.ctx.listings.saturating_sub(1);
        HostDirectoryEntryStream::drop(&mut self.inner(), stream)
    }
}
