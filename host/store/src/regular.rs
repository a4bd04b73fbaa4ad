//! Reading files of a home and files that an owner names: regular files only, without blocking, within a size limit.
//!
//! A named pipe would block its reader forever, a device has no end, and a link leads elsewhere. The check applies to
//! the opened file.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Depth of nested directories that [`first_special`] searches.
const MAX_DEPTH: usize = 16;

/// Whether symbolic links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// For the host's own files.
    Refused,
    /// For files that the owner names or writes.
    Followed,
}

/// Opens the regular file at `path` for reading. Never blocks.
///
/// # Errors
/// As opening a file does, and [`ErrorKind::InvalidInput`] with the kind of file if it is not a regular one.
pub fn open_regular(path: &Path, links: Links) -> io::Result<File> {
    // Opening a device may have an effect, so its kind is checked first.
    let found = match links {
        Links::Refused => fs::symlink_metadata(path),
        Links::Followed => fs::metadata(path).map_err(|error| dangling(path, error)),
    };
    check(found?.file_type())?;
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(flags(links)).open(path)?;
    check(file.metadata()?.file_type())?;
    Ok(file)
}

/// Reads the regular file at `path`.
///
/// # Errors
/// As [`open_regular`], and [`ErrorKind::FileTooLarge`] if it has more than `max` bytes.
pub fn read_regular(path: &Path, links: Links, max: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path, links)?;
    let length = file.metadata()?.len();
    let too_large = || io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {max} bytes"));
    if length > max {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    // The reported length of a file may be wrong.
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max { Err(too_large()) } else { Ok(bytes) }
}

/// The first entry below the directory `dir` that is neither a directory nor a regular file of at most `max` bytes,
/// with its kind. Only directories are opened; with [`Links::Followed`] a link to a directory is not special and not
/// searched.
///
/// # Errors
/// If a directory cannot be listed.
pub fn first_special(dir: &Path, max: u64, links: Links) -> io::Result<Option<(PathBuf, &'static str)>> {
    let mut waiting = vec![(dir.to_owned(), 0)];
    while let Some((dir, depth)) = waiting.pop() {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() && depth < MAX_DEPTH {
                waiting.push((entry.path(), depth + 1));
            } else if links == Links::Followed && kind.is_symlink() && entry.path().is_dir() {
                // The owner keeps that directory elsewhere.
            } else if !kind.is_file() {
                return Ok(Some((entry.path(), name_of(kind))));
            } else if max < u64::MAX && entry.metadata()?.len() > max {
                return Ok(Some((entry.path(), "a file that is too large")));
            }
        }
    }
    Ok(None)
}

/// The flags that keep an open from blocking and, for the host's own files, from following a link.
pub(crate) fn flags(links: Links) -> i32 {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let flags = if links == Links::Refused { flags | OFlags::NOFOLLOW } else { flags };
    flags.bits().cast_signed()
}

/// Refuses every kind except regular files.
pub(crate) fn check(kind: FileType) -> io::Result<()> {
    if kind.is_file() {
        return Ok(());
    }
    Err(io::Error::new(ErrorKind::InvalidInput, format!("it is {}, not a regular file", name_of(kind))))
}

/// A link to a missing target is not a missing file: a default in its place would surprise.
fn dangling(path: &Path, error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(path).is_ok() {
        return io::Error::new(ErrorKind::InvalidInput, "it is a symbolic link to a file that does not exist");
    }
    error
}

fn name_of(kind: FileType) -> &'static str {
    match kind {
        _ if kind.is_symlink() => "a symbolic link",
        _ if kind.is_dir() => "a directory",
        _ if kind.is_fifo() => "a named pipe",
        _ if kind.is_socket() => "a socket",
        _ if kind.is_file() => "a file",
        _ => "a device",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, Mode, mkfifoat};

    use super::*;

    #[test]
    fn nothing_but_a_regular_file_of_the_size_is_read() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::write(at("file"), "four").unwrap();
        symlink(at("file"), at("link")).unwrap();
        symlink(at("missing"), at("dangling")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        symlink(at("self"), at("self")).unwrap();
        fs::create_dir(at("directory")).unwrap();
        mkfifoat(CWD, at("pipe"), Mode::RUSR).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        File::create(at("sparse")).unwrap().set_len(1 << 40).unwrap();
        let check = |name: &str, links: Links, expected: Result<&str, &str>| {
            let read = read_regular(&at(name), links, 4).map_err(|error| error.to_string());
            match (read, expected) {
                (Ok(bytes), Ok(expected)) => assert_eq!(bytes, expected.as_bytes(), "{name}"),
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{name}: {error}"),
                (read, _) => panic!("{name}, {links:?}: {read:?}"),
            }
        };
        for links in [Links::Refused, Links::Followed] {
            check("file", links, Ok("four"));
            check("missing", links, Err("No such file"));
            check("directory", links, Err("a directory"));
            check("pipe", links, Err("a named pipe"));
            check("socket", links, Err("a socket"));
            check("sparse", links, Err("more than 4 bytes"));
        }
        check("link", Links::Followed, Ok("four"));
        check("link", Links::Refused, Err("a symbolic link"));
        check("zero", Links::Followed, Err("a device"));
        check("zero", Links::Refused, Err("a symbolic link"));
        check("dangling", Links::Followed, Err("does not exist"));
        check("self", Links::Followed, Err("symbolic links"));
        fs::write(at("file"), "fives").unwrap();
        check("file", Links::Refused, Err("more than 4 bytes"));
        // Its reported length is zero.
        assert!(read_regular(Path::new("/proc/self/status"), Links::Refused, 4).is_err());
    }

    #[test]
    fn a_special_file_is_found_at_any_depth() {
        let home = tempfile::tempdir().unwrap();
        let deep = home.path().join("a/b/c");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), "").unwrap();
        assert_eq!(first_special(home.path(), u64::MAX, Links::Refused).unwrap(), None);
        mkfifoat(CWD, deep.join("pipe"), Mode::RUSR).unwrap();
        assert_eq!(first_special(home.path(), 3, Links::Refused).unwrap(), Some((deep.join("pipe"), "a named pipe")));
        fs::remove_file(deep.join("pipe")).unwrap();
        symlink(&deep, home.path().join("link")).unwrap();
        assert_eq!(
            first_special(home.path(), 3, Links::Refused).unwrap(),
            Some((home.path().join("link"), "a symbolic link"))
        );
        assert_eq!(first_special(home.path(), 3, Links::Followed).unwrap(), None);
        fs::remove_file(home.path().join("link")).unwrap();
        fs::write(deep.join("file"), "four").unwrap();
        assert_eq!(first_special(home.path(), 4, Links::Refused).unwrap(), None);
        assert_eq!(first_special(home.path(), 3, Links::Refused).unwrap().unwrap().0, deep.join("file"));
    }
}
