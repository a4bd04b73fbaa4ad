//! Files over `wasi:filesystem`: this build has no standard library for them.
//!
//! Paths are relative to the one directory that the host opened; that none of them leaves it is the host's care.

use std::io::Write as _;

use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorType, ErrorCode, OpenFlags, PathFlags, filesystem_error_code,
};
use wasip2::io::streams::{OutputStream, StreamError};

use super::{Entry, Mode};
use crate::connected::failure::Failure;

type Result<T> = std::result::Result<T, Failure>;

/// Bytes that are asked for, or handed over, in one call to the host.
const PIECE_BYTES: u64 = 1 << 20;

pub fn read(path: &str, offset: u64, length: u64) -> Result<Vec<u8>> {
    let file = open(path, OpenFlags::empty(), DescriptorFlags::READ)?;
    let mut bytes = Vec::new();
    loop {
        let done = bytes.len() as u64;
        let wanted = length.saturating_sub(done).min(PIECE_BYTES);
        if wanted == 0 {
            return Ok(bytes);
        }
        let (piece, is_end) = file.read(wanted, offset.saturating_add(done)).map_err(|code| failure(code, path))?;
        if piece.is_empty() && !is_end {
            continue;
        }
        bytes.extend_from_slice(&piece);
        if is_end {
            return Ok(bytes);
        }
    }
}

pub fn write(path: &str, bytes: &[u8], mode: Mode) -> Result<()> {
    make_parents(path)?;
    let flags = match mode {
        Mode::Replace => OpenFlags::CREATE | OpenFlags::TRUNCATE,
        Mode::Append => OpenFlags::CREATE,
    };
    let file = open(path, flags, DescriptorFlags::WRITE)?;
    let stream = match mode {
        Mode::Replace => file.write_via_stream(0),
        Mode::Append => file.append_via_stream(),
    };
    let mut stream = stream.map_err(|code| failure(code, path))?;
    let written = stream.write_all(bytes).map_err(|_| ()).and_then(|()| stream.blocking_flush().map_err(|_| ()));
    // The adapter's error is words; asked again, the stream gives the code.
    written.map_err(|()| failure(code_of(&stream), path))
}

fn code_of(stream: &OutputStream) -> ErrorCode {
    match stream.check_write() {
        Err(StreamError::LastOperationFailed(error)) => filesystem_error_code(&error).unwrap_or(ErrorCode::Io),
        _ => ErrorCode::Io,
    }
}

pub fn list(path: &str, most: usize) -> Result<Vec<Entry>> {
    let directory = open(path, OpenFlags::DIRECTORY, DescriptorFlags::READ)?;
    let stream = directory.read_directory().map_err(|code| failure(code, path))?;
    let mut entries = Vec::new();
    while let Some(entry) = stream.read_directory_entry().map_err(|code| failure(code, path))? {
        if entries.len() == most {
            return Err(Failure::new("limit", format_args!("`{path}` has more than {most} entries")));
        }
        let size = match entry.type_ {
            DescriptorType::RegularFile => {
                directory.stat_at(PathFlags::empty(), &entry.name).map_or(0, |stat| stat.size)
            }
            _ => 0,
        };
        entries.push(Entry { name: entry.name, kind: kind(entry.type_), size });
    }
    entries.sort();
    Ok(entries)
}

pub fn stat(path: &str) -> Result<Entry> {
    let stat = root()?.stat_at(PathFlags::SYMLINK_FOLLOW, path).map_err(|code| failure(code, path))?;
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    let size = if stat.type_ == DescriptorType::RegularFile { stat.size } else { 0 };
    Ok(Entry { name, kind: kind(stat.type_), size })
}

pub fn remove(path: &str) -> Result<()> {
    let root = root()?;
    // Not following: the name itself is removed.
    let stat = root.stat_at(PathFlags::empty(), path).map_err(|code| failure(code, path))?;
    let removed = match stat.type_ {
        DescriptorType::Directory => root.remove_directory_at(path),
        _ => root.unlink_file_at(path),
    };
    removed.map_err(|code| failure(code, path))
}

pub fn make(path: &str) -> Result<()> {
    make_parents(path)?;
    make_one(&root()?, path)
}

fn make_parents(path: &str) -> Result<()> {
    let root = root()?;
    for (end, _) in path.match_indices('/') {
        make_one(&root, path.get(..end).unwrap_or_default())?;
    }
    Ok(())
}

fn make_one(root: &Descriptor, path: &str) -> Result<()> {
    match root.stat_at(PathFlags::SYMLINK_FOLLOW, path) {
        Ok(stat) if stat.type_ == DescriptorType::Directory => Ok(()),
        Ok(_) => Err(Failure::new("bad_input", format_args!("`{path}` is there and is no directory"))),
        Err(_) => root.create_directory_at(path).map_err(|code| failure(code, path)),
    }
}

fn open(path: &str, open: OpenFlags, flags: DescriptorFlags) -> Result<Descriptor> {
    root()?.open_at(PathFlags::SYMLINK_FOLLOW, path, open, flags).map_err(|code| failure(code, path))
}

/// The directory that the host opened. Asked for each time: a descriptor kept in a global would be in the snapshot.
fn root() -> Result<Descriptor> {
    let directory = get_directories().into_iter().next();
    directory.map(|(directory, _)| directory).ok_or_else(|| Failure::new("denied", "the program was given no files"))
}

fn kind(kind: DescriptorType) -> &'static str {
    match kind {
        DescriptorType::RegularFile => "file",
        DescriptorType::Directory => "directory",
        DescriptorType::SymbolicLink => "link",
        _ => "other",
    }
}

fn failure(code: ErrorCode, path: &str) -> Failure {
    let (code, why) = match code {
        ErrorCode::NoEntry => ("missing", "does not exist"),
        ErrorCode::NotDirectory => ("bad_input", "is, or leads through, something that is no directory"),
        ErrorCode::IsDirectory => ("bad_input", "is a directory"),
        ErrorCode::NotEmpty => ("bad_input", "is a directory that is not empty: remove what is in it first"),
        ErrorCode::NotPermitted | ErrorCode::Access => ("denied", "may not be used in that way"),
        ErrorCode::ReadOnly => ("denied", "may be read but not changed"),
        ErrorCode::InsufficientSpace | ErrorCode::Quota | ErrorCode::FileTooLarge => {
            ("limit", "does not fit: the workspace is full")
        }
        ErrorCode::Loop => ("bad_input", "passes through too many symbolic links"),
        ErrorCode::NameTooLong => ("bad_input", "has a name that is too long"),
        _ => ("failed", "cannot be used"),
    };
    Failure::new(code, format_args!("`{path}` {why}"))
}
