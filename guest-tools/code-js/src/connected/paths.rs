//! Paths that a program gives, as the host's directory takes them. The boundary is the host's; the reason is given here.

use super::failure::Failure;

/// How programs call the workspace.
const NAME: &str = "/workspace";
/// The directory of the host, where it puts output that was too long (SPEC RUN-9).
const HOST_DIRECTORY: &str = ".motor-output";
const MAX_BYTES: usize = 4096;

/// The names in a path below the workspace, `/` between them; `.` for the workspace itself.
///
/// # Errors
/// If it is not a path, or leads out.
pub fn parse(text: &str) -> Result<String, Failure> {
    if text.is_empty() || text.len() > MAX_BYTES || text.chars().any(char::is_control) {
        let why = "must name a file: 1 to 4096 bytes without control characters";
        return Err(Failure::new("bad_input", format_args!("the path {why}")));
    }
    let relative = match text.strip_prefix(NAME) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
        _ if text.starts_with('/') => {
            let message = format_args!("`{text}` is outside `{NAME}`: use a path relative to the workspace");
            return Err(Failure::new("denied", message));
        }
        _ => text,
    };
    let names: Vec<&str> = relative.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    if names.contains(&"..") {
        let message = format_args!("`{text}` contains `..`: use a path relative to the workspace");
        return Err(Failure::new("denied", message));
    }
    Ok(if names.is_empty() { ".".to_owned() } else { names.join("/") })
}

/// The same for something that is to be changed.
///
/// # Errors
/// As [`parse`]; also for the workspace itself and the host's own directory.
pub fn parse_to_change(text: &str) -> Result<String, Failure> {
    let path = parse(text)?;
    if path == "." {
        return Err(Failure::new("bad_input", "the path must name something in the workspace, not the workspace"));
    }
    if path.split('/').next() == Some(HOST_DIRECTORY) {
        let message = format_args!("`{HOST_DIRECTORY}` is written by the host only: choose another path");
        return Err(Failure::new("denied", message));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_workspace() {
        for (text, expected) in [
            ("a", "a"),
            ("/workspace/a/b", "a/b"),
            ("./a//b/.", "a/b"),
            ("/workspace", "."),
            (".", "."),
            ("...", "..."),
            (".motor-output/1.txt", ".motor-output/1.txt"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(expected), "{text}");
        }
        for (text, code) in [
            ("", "bad_input"),
            ("a\0b", "bad_input"),
            ("/etc/passwd", "denied"),
            ("/workspacex", "denied"),
            ("..", "denied"),
            ("a/../../b", "denied"),
            ("/workspace/..", "denied"),
        ] {
            assert_eq!(parse(text).unwrap_err().code, code, "{text:?}");
        }
    }

    #[test]
    fn the_hosts_directory_is_not_changed() {
        for text in [".motor-output", "./.motor-output/x", "/workspace/.motor-output/x", ".", "/workspace/"] {
            assert!(parse_to_change(text).is_err(), "{text}");
        }
        assert!(parse_to_change("a/.motor-output").is_ok());
    }
}
