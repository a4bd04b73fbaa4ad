//! Reading files and directories by the host's own calls, of which the standard library makes ten for a small file, two for
//! the facts of one, and one more for each name of a directory. Links are not followed. In a native build, which only
//! tests have, the standard library stands in.

use std::time::SystemTime;

pub use system::{beginning, facts, list};

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A directory, which may have entries.
    Directory,
    /// A file with content of its own.
    File,
    /// A symbolic link, wherever it leads.
    Link,
    /// A pipe, a socket or a device.
    Other,
}

/// The facts of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The kind of the entry.
    pub kind: Kind,
    /// Bytes of a file.
    pub size: u64,
    /// The time of the last change of its content.
    pub modified: Option<SystemTime>,
    /// The time of the last change of its content, name or mode.
    pub changed: Option<SystemTime>,
}

#[cfg(target_family = "wasm")]
mod system {
    use std::io;
    use std::path::Path;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use wasip2::clocks::wall_clock::Datetime;
    use wasip2::filesystem::preopens::get_directories;
    use wasip2::filesystem::types::{
        Descriptor, DescriptorFlags, DescriptorType, DirectoryEntryStream, ErrorCode, OpenFlags, PathFlags,
    };

    use crate::{Facts, Kind};

    /// Bytes of the first read.
    const LEAST_BYTES: usize = 4 * 1024;

    thread_local! {
        /// The directory that the host opened, and its path.
        static ROOT: Option<(Descriptor, String)> = get_directories().into_iter().next();
    }

    /// The names in a directory, each with its kind.
    pub struct Names {
        // Before the directory, which must outlive it.
        stream: DirectoryEntryStream,
        _directory: Descriptor,
    }

    impl Iterator for Names {
        type Item = io::Result<(String, Kind)>;

        fn next(&mut self) -> Option<Self::Item> {
            let entry = self.stream.read_directory_entry().map_err(fault).transpose()?;
            Some(entry.map(|entry| (entry.name, kind(entry.type_))))
        }
    }

    /// The names in a directory, in no order that counts.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn list(path: &Path) -> io::Result<Names> {
        let directory = open(path, OpenFlags::DIRECTORY)?;
        Ok(Names { stream: directory.read_directory().map_err(fault)?, _directory: directory })
    }

    /// The first `most` bytes of a file.
    ///
    /// # Errors
    /// If it cannot be opened or read.
    pub fn beginning(path: &Path, most: usize) -> io::Result<Vec<u8>> {
        let file = open(path, OpenFlags::empty())?;
        let mut bytes = Vec::new();
        while bytes.len() < most {
            // The host prepares as many bytes as are asked for, and most files are small.
            let wanted = bytes.len().max(LEAST_BYTES).min(most - bytes.len());
            let (piece, is_end) = file.read(wanted as u64, bytes.len() as u64).map_err(fault)?;
            bytes.extend_from_slice(&piece);
            if is_end {
                break;
            }
        }
        Ok(bytes)
    }

    /// The facts of an entry.
    ///
    /// # Errors
    /// If it is missing, or cannot be reached.
    pub fn facts(path: &Path) -> io::Result<Facts> {
        below(path, |directory, name| {
            let found = directory.stat_at(PathFlags::empty(), name)?;
            Ok(Facts {
                kind: kind(found.type_),
                size: found.size,
                modified: found.data_modification_timestamp.and_then(time),
                changed: found.status_change_timestamp.and_then(time),
            })
        })
    }

    fn open(path: &Path, flags: OpenFlags) -> io::Result<Descriptor> {
        below(path, |directory, name| directory.open_at(PathFlags::empty(), name, flags, DescriptorFlags::READ))
    }

    /// Asks for a path below the one directory that the host opened.
    fn below<T>(path: &Path, ask: impl FnOnce(&Descriptor, &str) -> Result<T, ErrorCode>) -> io::Result<T> {
        ROOT.with(|root| {
            let (directory, name) = root.as_ref().ok_or(io::ErrorKind::NotFound)?;
            let below = path.strip_prefix(name).ok().and_then(Path::to_str).ok_or(io::ErrorKind::InvalidInput)?;
            ask(directory, if below.is_empty() { "." } else { below }).map_err(fault)
        })
    }

    fn time(stamp: Datetime) -> Option<SystemTime> {
        UNIX_EPOCH.checked_add(Duration::new(stamp.seconds, stamp.nanoseconds))
    }

    fn kind(of: DescriptorType) -> Kind {
        match of {
            DescriptorType::SymbolicLink => Kind::Link,
            DescriptorType::Directory => Kind::Directory,
            DescriptorType::RegularFile => Kind::File,
            _ => Kind::Other,
        }
    }

    /// The error that the standard library would report: its numbers are those of wasi-libc.
    fn fault(code: ErrorCode) -> io::Error {
        let number = match code {
            ErrorCode::Access => 2,
            ErrorCode::Busy => 10,
            ErrorCode::Invalid => 28,
            ErrorCode::Io => 29,
            ErrorCode::IsDirectory => 31,
            ErrorCode::Loop => 32,
            ErrorCode::NameTooLong => 37,
            ErrorCode::NoEntry => 44,
            ErrorCode::NotDirectory => 54,
            ErrorCode::NotPermitted => 63,
            _ => return io::Error::other(code.name()),
        };
        io::Error::from_raw_os_error(number)
    }
}

#[cfg(not(target_family = "wasm"))]
mod system {
    use std::fs::{self, File, FileType};
    use std::io::{self, Read as _};
    use std::path::Path;

    use crate::{Facts, Kind};

    /// The names in a directory, in no order that counts.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn list(path: &Path) -> io::Result<impl Iterator<Item = io::Result<(String, Kind)>>> {
        Ok(fs::read_dir(path)?.map(|entry| {
            let entry = entry?;
            // As the host reports it: an error of the entry.
            let name = entry.file_name().into_string().map_err(|_| io::ErrorKind::InvalidData)?;
            Ok((name, kind(entry.file_type()?)))
        }))
    }

    /// The facts of an entry.
    ///
    /// # Errors
    /// If it is missing, or cannot be reached.
    pub fn facts(path: &Path) -> io::Result<Facts> {
        let found = fs::symlink_metadata(path)?;
        let (modified, changed) = (found.modified().ok(), found.created().ok());
        Ok(Facts { kind: kind(found.file_type()), size: found.len(), modified, changed })
    }

    fn kind(of: FileType) -> Kind {
        match of {
            kind if kind.is_symlink() => Kind::Link,
            kind if kind.is_dir() => Kind::Directory,
            kind if kind.is_file() => Kind::File,
            _ => Kind::Other,
        }
    }

    /// The first `most` bytes of a file.
    ///
    /// # Errors
    /// If it cannot be opened or read.
    pub fn beginning(path: &Path, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(most as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
