//! Searching and listing by the host's own calls, of which the standard library makes ten for a small file and one more for
//! each name of a directory. In a native build, which only tests have, the standard library stands in.

pub(crate) use system::{beginning, list};

#[cfg(target_family = "wasm")]
mod system {
    use std::io;
    use std::path::Path;

    use wasip2::filesystem::preopens::get_directories;
    use wasip2::filesystem::types::{
        Descriptor, DescriptorFlags, DescriptorType, DirectoryEntryStream, ErrorCode, OpenFlags, PathFlags,
    };

    use crate::walk::Kind;

    /// Bytes of the first read.
    const LEAST_BYTES: usize = 4 * 1024;

    thread_local! {
        /// The directory that the host opened, and its path.
        static ROOT: Option<(Descriptor, String)> = get_directories().into_iter().next();
    }

    pub(crate) struct Names {
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

    pub(crate) fn list(path: &Path) -> io::Result<Names> {
        let directory = open(path, OpenFlags::DIRECTORY)?;
        Ok(Names { stream: directory.read_directory().map_err(fault)?, _directory: directory })
    }

    pub(crate) fn beginning(path: &Path, most: usize) -> io::Result<Vec<u8>> {
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

    /// Opens a path below the one directory that the host opened. Links are not followed: a walk names none.
    fn open(path: &Path, flags: OpenFlags) -> io::Result<Descriptor> {
        ROOT.with(|root| {
            let (directory, name) = root.as_ref().ok_or(io::ErrorKind::NotFound)?;
            let below = path.strip_prefix(name).ok().and_then(Path::to_str).ok_or(io::ErrorKind::InvalidInput)?;
            let below = if below.is_empty() { "." } else { below };
            directory.open_at(PathFlags::empty(), below, flags, DescriptorFlags::READ).map_err(fault)
        })
    }

    fn kind(of: DescriptorType) -> Kind {
        match of {
            DescriptorType::SymbolicLink => Kind::Link,
            DescriptorType::Directory => Kind::Directory,
            DescriptorType::RegularFile => Kind::File,
            _ => Kind::Other,
        }
    }

    fn fault(code: ErrorCode) -> io::Error {
        let kind = match code {
            ErrorCode::NoEntry => io::ErrorKind::NotFound,
            ErrorCode::NotDirectory => io::ErrorKind::NotADirectory,
            ErrorCode::Access | ErrorCode::NotPermitted => io::ErrorKind::PermissionDenied,
            _ => return io::Error::other(code.name()),
        };
        io::Error::new(kind, code.name())
    }
}

#[cfg(not(target_family = "wasm"))]
mod system {
    use std::fs::{self, File};
    use std::io::{self, Read as _};
    use std::path::Path;

    use crate::walk::Kind;

    pub(crate) fn list(path: &Path) -> io::Result<impl Iterator<Item = io::Result<(String, Kind)>>> {
        Ok(fs::read_dir(path)?.map(|entry| {
            let entry = entry?;
            // As the host reports it: an error of the entry.
            let name = entry.file_name().into_string().map_err(|_| io::ErrorKind::InvalidData)?;
            let kind = match entry.file_type()? {
                kind if kind.is_symlink() => Kind::Link,
                kind if kind.is_dir() => Kind::Directory,
                kind if kind.is_file() => Kind::File,
                _ => Kind::Other,
            };
            Ok((name, kind))
        }))
    }

    pub(crate) fn beginning(path: &Path, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(most as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
