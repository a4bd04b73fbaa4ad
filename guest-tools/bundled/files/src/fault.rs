//! The meaning of an I/O error for a model. The system's own text is never passed on: it may name things outside.

use std::io::{Error, ErrorKind};

use motor_sdk::ToolError;

/// The answer to an operation on `shown`, a path as the model gave it, that failed.
pub(crate) fn of(error: &Error, shown: &str) -> ToolError {
    match error.kind() {
        ErrorKind::NotFound => ToolError::missing(format!("`{shown}` does not exist")),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            ToolError::denied(format!("`{shown}` may not be accessed in this way"))
        }
        ErrorKind::NotADirectory => {
            ToolError::bad_input(format!("a part of `{shown}` is a file, so nothing can be below it"))
        }
        ErrorKind::IsADirectory => ToolError::bad_input(format!("`{shown}` is a directory")),
        ErrorKind::InvalidFilename => ToolError::bad_input(format!("`{shown}` has a name that is too long")),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            ToolError::limit(format!("the workspace is full: `{shown}` could not be written; make room or write less"))
        }
        kind => ToolError::failed(format!("`{shown}` could not be accessed: {kind}")),
    }
}
