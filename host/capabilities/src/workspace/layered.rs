//! The directories of one call over a copy-on-write layer (SPEC LAND-1).
//!
//! Files that a guest has open are real files with wasmtime-wasi's own descriptors, so reading and writing cost as
//! much as without a layer. A directory that a guest has open is a path of the layer: its descriptor is a placeholder,
//! and its number leads to the path.

use std::collections::{HashMap, VecDeque};
use std::fs::File as StdFile;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use layer::{Call, FileKind, Guard, Layer, LayerError, OpenMode, OpenedFile, Origin, Stat};
use wasmtime_wasi::FsPerms;
use wasmtime_wasi::filesystem::{Descriptor, Dir, File, OpenMode as DescriptorMode};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode, MetadataHashValue, NewTimestamp,
    OpenFlags,
};
use wasmtime_wasi::p2::{DynInputStream, FsError, FsResult, InputStream, Pollable, StreamError};

use super::Access;

/// A layer as one call sees it.
pub(super) struct Layered {
    layer: Arc<Layer>,
    call: Call,
    access: Access,
    /// Stands for directories in the table of the call.
    placeholder: Dir,
    /// The paths of open directories, by the number of their descriptor.
    directories: HashMap<u32, String>,
    /// Open files, by the number of their descriptor.
    files: HashMap<u32, OpenFile>,
    /// The rest of each open listing, by the number of its stream.
    listings: HashMap<u32, VecDeque<DirectoryEntry>>,
}

#[derive(Clone)]
struct OpenFile {
    file: Arc<StdFile>,
    /// For a file of the owner.
    guard: Option<Guard>,
}

impl OpenFile {
    /// The bytes of a file of the owner. Fails if the owner has changed it since it was opened: the bytes read may be a
    /// mixture.
    fn check(&self) -> std::io::Result<Option<u64>> {
        self.guard.as_ref().map(|guard| guard.check(&self.file)).transpose()
    }
}

/// A file or directory that was opened.
pub(super) enum Opened {
    Directory(String),
    File(File, Option<Guard>),
}

impl Layered {
    pub fn new(layer: Arc<Layer>, call: Call, access: Access, placeholder: Dir) -> Self {
        Self {
            layer,
            call,
            access,
            placeholder,
            directories: HashMap::new(),
            files: HashMap::new(),
            listings: HashMap::new(),
        }
    }

    /// The path of an open directory.
    pub fn directory(&self, number: u32) -> Option<&str> {
        self.directories.get(&number).map(String::as_str)
    }

    /// The path that a guest names below an open directory.
    pub fn path(&self, number: u32, path: &str) -> FsResult<String> {
        let directory = self.directory(number).ok_or(ErrorCode::NotDirectory)?;
        if path.starts_with('/') {
            return Err(ErrorCode::NotPermitted.into());
        }
        Ok(if directory.is_empty() { path.to_owned() } else { format!("{directory}/{path}") })
    }

    /// The descriptor of an opened entry, to be put into the call's table.
    pub fn descriptor(&self, opened: &Opened) -> Descriptor {
        match opened {
            Opened::Directory(_) => Descriptor::Dir(self.placeholder.clone()),
            Opened::File(file, _) => Descriptor::File(file.clone()),
        }
    }

    /// Remembers the entry that a number of the call's table stands for.
    pub fn opened(&mut self, number: u32, opened: Opened) {
        match opened {
            Opened::Directory(path) => {
                self.directories.insert(number, path);
            }
            Opened::File(file, guard) => {
                self.files.insert(number, OpenFile { file: file.file, guard });
            }
        }
    }

    pub fn dropped(&mut self, number: u32) {
        self.directories.remove(&number);
        self.files.remove(&number);
    }

    /// The bytes of an open file of the owner. Fails if it has changed since it was opened.
    pub fn check(&self, number: u32) -> FsResult<Option<u64>> {
        Ok(self.files.get(&number).map_or(Ok(None), OpenFile::check)?)
    }

    /// The identity of an open file.
    pub fn identity(&self, number: u32) -> FsResult<MetadataHashValue> {
        let open = self.files.get(&number).ok_or(ErrorCode::BadDescriptor)?;
        Ok(identity(&layer::stat_of(&open.file).map_err(std::io::Error::from)?))
    }

    /// A stream that checks the file after each read.
    pub fn guarded(&self, number: u32, stream: DynInputStream) -> DynInputStream {
        match self.files.get(&number) {
            Some(open) if open.guard.is_some() => Box::new(GuardedStream { stream, open: open.clone() }),
            _ => stream,
        }
    }

    pub fn list(&mut self, number: u32, entries: VecDeque<DirectoryEntry>) {
        self.listings.insert(number, entries);
    }

    pub fn next_entry(&mut self, number: u32) -> Option<DirectoryEntry> {
        self.listings.get_mut(&number)?.pop_front()
    }

    pub fn listed(&mut self, number: u32) {
        self.listings.remove(&number);
    }

    pub fn flags(&self) -> DescriptorFlags {
        match self.access {
            Access::ReadOnly => DescriptorFlags::READ,
            Access::ReadWrite => DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY,
        }
    }

    /// Fails if the call may only read.
    pub fn check_writable(&self) -> FsResult<()> {
        if self.access == Access::ReadOnly { Err(ErrorCode::NotPermitted.into()) } else { Ok(()) }
    }

    /// Does something with the layer, on the thread of the call.
    pub fn with<T>(&self, operation: impl FnOnce(&Layer, &Call) -> Result<T, LayerError>) -> FsResult<T> {
        operation(&self.layer, &self.call).map_err(code)
    }

    /// Opens a path as a guest's flags ask for. The bytes that this adds to the workspace were charged before.
    pub fn open(&self, path: String, follow: bool, open: OpenFlags, flags: DescriptorFlags) -> FsResult<Opened> {
        let writes = flags.contains(DescriptorFlags::WRITE);
        let makes = open.intersects(OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE);
        if writes || makes || flags.contains(DescriptorFlags::MUTATE_DIRECTORY) {
            self.check_writable()?;
        }
        if open.contains(OpenFlags::DIRECTORY) {
            if open.intersects(OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE) {
                return Err(ErrorCode::Invalid.into());
            }
            return self.open_directory(path, follow);
        }
        if !writes && !makes {
            let named = path.clone();
            let opened = self.with(move |layer, _| match layer.open_read(&named, follow) {
                Err(LayerError::IsDirectory) => Ok(None),
                other => other.map(Some),
            });
            return match opened? {
                Some(OpenedFile { file, from }) => {
                    let guard = match from {
                        Origin::Lower(guard) => Some(guard),
                        Origin::Upper => None,
                    };
                    Ok(Opened::File(File::new(file, FsPerms::ReadOnly, DescriptorMode::READ, true), guard))
                }
                None => Ok(Opened::Directory(path)),
            };
        }
        let mode = OpenMode {
            create: open.contains(OpenFlags::CREATE),
            exclusive: open.contains(OpenFlags::EXCLUSIVE),
            truncate: open.contains(OpenFlags::TRUNCATE),
            read: flags.contains(DescriptorFlags::READ),
        };
        let file = self.with(move |layer, call| layer.open_write(call, &path, mode, follow))?;
        let mut descriptor = DescriptorMode::WRITE;
        if mode.read {
            descriptor |= DescriptorMode::READ;
        }
        Ok(Opened::File(File::new(file, FsPerms::ReadWrite, descriptor, true), None))
    }

    fn open_directory(&self, path: String, follow: bool) -> FsResult<Opened> {
        let named = path.clone();
        let stat = self.with(move |layer, _| layer.stat(&named, follow))?;
        if stat.kind == FileKind::Directory { Ok(Opened::Directory(path)) } else { Err(ErrorCode::NotDirectory.into()) }
    }
}

/// A stream over a file of the owner.
struct GuardedStream {
    stream: DynInputStream,
    open: OpenFile,
}

impl GuardedStream {
    fn checked(&self, bytes: Bytes) -> Result<Bytes, StreamError> {
        self.open.check().map_err(|error| StreamError::LastOperationFailed(error.into()))?;
        Ok(bytes)
    }
}

#[wasmtime_wasi::async_trait]
impl InputStream for GuardedStream {
    fn read(&mut self, size: usize) -> Result<Bytes, StreamError> {
        let bytes = self.stream.read(size)?;
        self.checked(bytes)
    }

    /// The stream of a file reads on the thread of the call here, and on another one otherwise.
    async fn blocking_read(&mut self, size: usize) -> Result<Bytes, StreamError> {
        let bytes = self.stream.blocking_read(size).await?;
        self.checked(bytes)
    }

    async fn cancel(&mut self) {
        self.stream.cancel().await;
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for GuardedStream {
    async fn ready(&mut self) {
        self.stream.ready().await;
    }
}

/// The error that guests are given.
fn code(error: LayerError) -> FsError {
    let code = match error {
        LayerError::NotFound => ErrorCode::NoEntry,
        LayerError::Exists => ErrorCode::Exist,
        LayerError::NotDirectory => ErrorCode::NotDirectory,
        LayerError::IsDirectory => ErrorCode::IsDirectory,
        LayerError::NotEmpty => ErrorCode::NotEmpty,
        LayerError::ReadOnly => ErrorCode::ReadOnly,
        LayerError::Busy => ErrorCode::Busy,
        LayerError::Escapes => ErrorCode::NotPermitted,
        LayerError::Loop => ErrorCode::Loop,
        LayerError::CrossDevice => ErrorCode::CrossDevice,
        LayerError::Invalid => ErrorCode::Invalid,
        LayerError::Io(error) => return error.into(),
        _ => ErrorCode::Unsupported,
    };
    code.into()
}

pub(super) fn kind(kind: FileKind) -> DescriptorType {
    match kind {
        FileKind::File => DescriptorType::RegularFile,
        FileKind::Directory => DescriptorType::Directory,
        FileKind::Symlink => DescriptorType::SymbolicLink,
    }
}

pub(super) fn stat(stat: &Stat) -> DescriptorStat {
    DescriptorStat {
        type_: kind(stat.kind),
        link_count: stat.links,
        size: stat.size,
        data_access_timestamp: datetime(stat.accessed),
        data_modification_timestamp: datetime(stat.modified),
        status_change_timestamp: datetime(stat.changed),
    }
}

/// Equal for the same file only.
pub(super) fn identity(stat: &Stat) -> MetadataHashValue {
    let half = |part: u8| {
        let mut hasher = DefaultHasher::new();
        (part, stat.device, stat.inode).hash(&mut hasher);
        hasher.finish()
    };
    MetadataHashValue { lower: half(0), upper: half(1) }
}

/// The time that a guest sets; `None`: it stays.
pub(super) fn new_time(time: NewTimestamp) -> FsResult<Option<layer::NewTime>> {
    match time {
        NewTimestamp::NoChange => Ok(None),
        NewTimestamp::Now => Ok(Some(layer::NewTime::Now)),
        NewTimestamp::Timestamp(time) if time.nanoseconds < 1_000_000_000 => {
            let since = Duration::new(time.seconds, time.nanoseconds);
            let at = UNIX_EPOCH.checked_add(since).ok_or(ErrorCode::Invalid)?;
            Ok(Some(layer::NewTime::At(at)))
        }
        NewTimestamp::Timestamp(_) => Err(ErrorCode::Invalid.into()),
    }
}

fn datetime(time: SystemTime) -> Option<Datetime> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    Some(Datetime { seconds: since.as_secs(), nanoseconds: since.subsec_nanos() })
}
