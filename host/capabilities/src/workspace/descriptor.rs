//! The operations on files and directories: wasmtime-wasi's, metered, and those on directories of a layer by path.

use layer::{FileKind, OUTPUT, folded};
use wasmtime::component::Resource;
use wasmtime_wasi::FsPerms;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Advice, Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, DirectoryEntryStream,
    ErrorCode, Filesize, HostDescriptor, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

use super::layered::{Layered, identity, kind, new_time, stat};
use super::{MAX_LISTINGS, WorkspaceView};
use crate::{Limit, LimitExceeded};

/// Whether a path below a directory that is not a layer's names the host's own directory, or an entry in it. Its name is taken in every
/// directory that a guest holds open, because those have no paths. Guests cannot make links, so that names suffice.
fn is_hosts(path: &str) -> bool {
    let mut names = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    // As on a file system that ignores case.
    names.first().is_some_and(|name| folded(name) == OUTPUT)
}

/// Refuses a change of the host's own directory. A layer does so itself.
fn check_changeable(path: &str) -> FsResult<()> {
    if is_hosts(path) { Err(ErrorCode::NotPermitted.into()) } else { Ok(()) }
}

impl WorkspaceView<'_> {
    fn layered(&self) -> Option<&Layered> {
        self.ctx.layered.as_ref()
    }

    /// The layer and the path of an open directory of it.
    fn directory(&self, fd: &Resource<Descriptor>) -> Option<(&Layered, String)> {
        let layered = self.ctx.layered.as_ref()?;
        Some((layered, layered.directory(fd.rep())?.to_owned()))
    }

    /// Charges the growth of the workspace by a write below a path of the layer: a copy of the owner's file.
    fn spend_copy(&mut self, path: &str) -> FsResult<()> {
        let Some(layered) = self.layered() else { return Ok(()) };
        layered.check_writable()?;
        let named = path.to_owned();
        let copy = layered.with(move |layer, _| layer.copy_up_size(&named))?;
        for _ in 0..copy.files {
            self.spend_file()?;
        }
        self.spend_bytes(copy.bytes)
    }

    fn open_layered(
        &mut self,
        path: String,
        follow: bool,
        open: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let truncates = open.contains(OpenFlags::TRUNCATE);
        if open.contains(OpenFlags::CREATE) || flags.contains(DescriptorFlags::WRITE) || truncates {
            let Some(layered) = self.layered() else { return Err(ErrorCode::BadDescriptor.into()) };
            let named = path.clone();
            // A missing file is a new one; one of the owner is copied before it is changed.
            match layered.with(move |layer, _| layer.stat(&named, follow)) {
                Ok(found) if found.kind == FileKind::File => self.spend_copy(&path)?,
                Ok(_) => {}
                Err(_) => self.spend_file()?,
            }
        }
        let Some(layered) = self.layered() else { return Err(ErrorCode::BadDescriptor.into()) };
        let opened = layered.open(path, follow, open, flags)?;
        let fd = self.table.push(layered.descriptor(&opened)).map_err(FsError::trap)?;
        if let Some(layered) = &mut self.ctx.layered {
            layered.opened(fd.rep(), opened);
        }
        Ok(fd)
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
        if let Some(layered) = self.layered() {
            let path = layered.path(fd.rep(), &path)?;
            return self.open_layered(path, path_flags.contains(PathFlags::SYMLINK_FOLLOW), open_flags, flags);
        }
        let is_hosts = is_hosts(&path);
        if is_hosts
            && (open_flags.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE)
                || flags.contains(DescriptorFlags::WRITE))
        {
            return Err(ErrorCode::NotPermitted.into());
        }
        if open_flags.contains(OpenFlags::CREATE) {
            let directory = Resource::new_borrow(fd.rep());
            if self.inner().stat_at(directory, path_flags, path.clone()).await.is_err() {
                self.spend_file()?;
            }
        }
        let opened = self.inner().open_at(fd, path_flags, path, open_flags, flags).await?;
        if is_hosts {
            // Holds for all that is opened below it, too.
            match self.table.get_mut(&opened).map_err(FsError::trap)? {
                Descriptor::Dir(directory) => directory.perms = FsPerms::ReadOnly,
                Descriptor::File(file) => file.perms = FsPerms::ReadOnly,
            }
        }
        Ok(opened)
    }

    async fn create_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        if self.layered().is_none() {
            check_changeable(&path)?;
        }
        self.spend_file()?;
        if let Some(layered) = self.layered() {
            layered.check_writable()?;
            let path = layered.path(fd.rep(), &path)?;
            return layered.with(move |layer, call| layer.create_dir(call, &path));
        }
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

    async fn read_directory(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DirectoryEntryStream>> {
        if self.ctx.listings >= MAX_LISTINGS {
            return Err(FsError::trap(LimitExceeded { limit: Limit::Handles, value: MAX_LISTINGS }));
        }
        let entries = match self.directory(&fd) {
            Some((layered, path)) => Some(layered.with(move |layer, _| layer.list(&path))?),
            None => None,
        };
        // The stream of a layered directory is the placeholder's, which has the number that the entries are kept by.
        let listing = self.inner().read_directory(fd).await?;
        if let (Some(layered), Some(entries)) = (&mut self.ctx.layered, entries) {
            let entry = |found: layer::Entry| DirectoryEntry { type_: kind(found.kind), name: found.name };
            layered.list(listing.rep(), entries.into_iter().map(entry).collect());
        }
        self.ctx.listings += 1;
        Ok(listing)
    }

    async fn read(&mut self, fd: Resource<Descriptor>, len: Filesize, offset: Filesize) -> FsResult<(Vec<u8>, bool)> {
        let number = fd.rep();
        let (bytes, mut is_end) = self.inner().read(fd, len, offset).await?;
        if let Some(size) = self.layered().map_or(Ok(None), |layered| layered.check(number))? {
            // The guest need not read again to learn of the end. Files of no size may have content all the same.
            is_end |= size > 0 && offset.checked_add(bytes.len() as u64) == Some(size);
        }
        Ok((bytes, is_end))
    }

    fn read_via_stream(&mut self, fd: Resource<Descriptor>, offset: Filesize) -> FsResult<Resource<DynInputStream>> {
        let number = fd.rep();
        let stream = self.inner().read_via_stream(fd, offset)?;
        let Some(layered) = self.ctx.layered.as_ref() else { return Ok(stream) };
        let inner = self.table.delete(stream).map_err(FsError::trap)?;
        self.table.push(layered.guarded(number, inner)).map_err(FsError::trap)
    }

    async fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        match self.directory(&fd) {
            Some((layered, _)) => Ok(layered.flags()),
            None => self.inner().get_flags(fd).await,
        }
    }

    async fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        match self.directory(&fd) {
            // The times of a directory are not landed.
            Some((layered, _)) => layered.check_writable(),
            None => self.inner().set_times(fd, accessed, modified).await,
        }
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        if let Some(layered) = self.layered() {
            let path = layered.path(fd.rep(), &path)?;
            let (accessed, modified) = (new_time(accessed)?, new_time(modified)?);
            let follow = path_flags.contains(PathFlags::SYMLINK_FOLLOW);
            self.spend_copy(&path)?;
            let Some(layered) = self.layered() else { return Err(ErrorCode::BadDescriptor.into()) };
            return layered.with(move |layer, call| layer.set_times(call, &path, follow, accessed, modified));
        }
        check_changeable(&path)?;
        self.inner().set_times_at(fd, path_flags, path, accessed, modified).await
    }

    async fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        match self.directory(&fd) {
            Some((layered, path)) => Ok(stat(&layered.with(move |layer, _| layer.stat(&path, true))?)),
            None => self.inner().stat(fd).await,
        }
    }

    async fn stat_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        if let Some(layered) = self.layered() {
            let path = layered.path(fd.rep(), &path)?;
            let follow = path_flags.contains(PathFlags::SYMLINK_FOLLOW);
            return Ok(stat(&layered.with(move |layer, _| layer.stat(&path, follow))?));
        }
        self.inner().stat_at(fd, path_flags, path).await
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        if let Some(layered) = &mut self.ctx.layered {
            layered.dropped(fd.rep());
        }
        HostDescriptor::drop(&mut self.inner(), fd)
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        if let Some(layered) = self.layered() {
            let path = layered.path(fd.rep(), &path)?;
            return layered.with(move |layer, _| layer.read_link(&path));
        }
        self.inner().readlink_at(fd, path).await
    }

    async fn remove_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        if let Some(layered) = self.layered() {
            layered.check_writable()?;
            let path = layered.path(fd.rep(), &path)?;
            return layered.with(move |layer, call| layer.remove_dir(call, &path));
        }
        check_changeable(&path)?;
        self.inner().remove_directory_at(fd, path).await
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        old_path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        if let Some(layered) = self.layered() {
            let (from, to) = (layered.path(fd.rep(), &old_path)?, layered.path(new_fd.rep(), &new_path)?);
            self.spend_copy(&from)?;
            let Some(layered) = self.layered() else { return Err(ErrorCode::BadDescriptor.into()) };
            return layered.with(move |layer, call| layer.rename(call, &from, &to));
        }
        check_changeable(&old_path)?;
        check_changeable(&new_path)?;
        self.inner().rename_at(fd, old_path, new_fd, new_path).await
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        if let Some(layered) = self.layered() {
            layered.check_writable()?;
            let path = layered.path(fd.rep(), &path)?;
            return layered.with(move |layer, call| layer.unlink(call, &path));
        }
        check_changeable(&path)?;
        self.inner().unlink_file_at(fd, path).await
    }

    async fn is_same_object(&mut self, a: Resource<Descriptor>, b: Resource<Descriptor>) -> wasmtime::Result<bool> {
        match (self.directory(&a), self.directory(&b)) {
            (Some((_, a)), Some((_, b))) => Ok(a == b),
            (None, None) => self.inner().is_same_object(a, b).await,
            _ => Ok(false),
        }
    }

    async fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        match (self.layered(), self.directory(&fd)) {
            (None, _) => self.inner().metadata_hash(fd).await,
            (Some(layered), None) => layered.identity(fd.rep()),
            (Some(_), Some((layered, path))) => Ok(identity(&layered.with(|layer, _| layer.stat(&path, true))?)),
        }
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        let Some(layered) = self.layered() else { return self.inner().metadata_hash_at(fd, path_flags, path).await };
        let path = layered.path(fd.rep(), &path)?;
        let follow = path_flags.contains(PathFlags::SYMLINK_FOLLOW);
        Ok(identity(&layered.with(|layer, _| layer.stat(&path, follow))?))
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

    async fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        self.inner().get_type(fd).await
    }

    async fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.inner().sync(fd).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_of_the_host_is_known_by_its_name() {
        for path in
            [".motor-output", ".Motor-Output/1.txt", "./.motor-output/1.txt", "a/../.motor-output", ".motor-output//"]
        {
            assert!(is_hosts(path), "{path}");
        }
        for path in ["", ".", "motor-output", "a/.motor-output", ".motor-output/../a", ".motor-output2"] {
            assert!(!is_hosts(path), "{path}");
        }
    }
}
