//! Why an operation on a layer fails.

use std::io;

use rustix::io::Errno;

/// Why an operation on a layer fails. Each has one error code of `wasi:filesystem`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// There is nothing at the path.
    #[error("there is no such file or directory")]
    NotFound,
    /// There is something at the path already.
    #[error("it exists already")]
    Exists,
    /// A directory was expected.
    #[error("it is not a directory")]
    NotDirectory,
    /// A file was expected.
    #[error("it is a directory")]
    IsDirectory,
    /// The directory has entries.
    #[error("the directory is not empty")]
    NotEmpty,
    /// The directory is granted for reading only.
    #[error("the directory may only be read")]
    ReadOnly,
    /// The owner changed the file after the run began.
    #[error("it was changed after the run began")]
    Busy,
    /// The path leads out of its directory.
    #[error("the path leads out of the directory")]
    Escapes,
    /// Too many links in a path, or a link where none may be.
    #[error("there are too many symbolic links")]
    Loop,
    /// A directory is too large to be renamed as a whole.
    #[error("the directory is too large, or has a link in it, and cannot be renamed as a whole")]
    CrossDevice,
    /// A directory would be moved into itself.
    #[error("a directory cannot be moved into itself")]
    Invalid,
    /// The operation is not offered.
    #[error("this is not possible with a link")]
    Unsupported,
    /// The directory is another one than when the run began.
    #[error("{0} is not the directory that it was when the run began")]
    Replaced(String),
    /// A file of the layer cannot be understood.
    #[error("the layer's `{0}` is damaged")]
    Damaged(&'static str),
    /// The run changed too much to list it.
    #[error("more than {} paths changed", crate::MAX_CHANGES)]
    TooMany,
    /// The operating system refuses the operation.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Errno> for LayerError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::NotFound,
            Errno::EXIST => Self::Exists,
            Errno::NOTDIR => Self::NotDirectory,
            Errno::ISDIR => Self::IsDirectory,
            Errno::NOTEMPTY => Self::NotEmpty,
            Errno::LOOP => Self::Loop,
            error => Self::Io(error.into()),
        }
    }
}

/// The result of an operation on a layer.
pub(crate) type Result<T, E = LayerError> = std::result::Result<T, E>;
