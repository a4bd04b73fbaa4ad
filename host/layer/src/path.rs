//! Paths as a run sees them: relative to `/workspace`, `/` between the parts, without `.`, `..` and links.

/// A part of a path that is still to be walked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub name: String,
    /// The depth above which `..` leads out: that of the root of the directory whose link the part comes from.
    pub floor: usize,
}

/// The parts of a path; empty ones and `.` mean nothing. A path that ends with `/` has to be a directory.
pub fn parts(path: &str, floor: usize) -> Vec<Part> {
    let named = |name: &&str| !matches!(*name, "" | ".");
    path.split('/').filter(named).map(|name| Part { name: name.to_owned(), floor }).collect()
}

/// The one form of a path that names no parent; `None` if it names one.
#[must_use]
pub fn plain(path: &str) -> Option<String> {
    let mut joined = String::with_capacity(path.len());
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => return None,
            name => push(&mut joined, name),
        }
    }
    Some(joined)
}

/// Adds a name to a path.
pub fn push(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('/');
    }
    path.push_str(name);
}

/// A name below a path.
pub fn join(path: &str, name: &str) -> String {
    let mut joined = path.to_owned();
    push(&mut joined, name);
    joined
}

/// The directory and the name of a path; the root has none.
pub fn split(path: &str) -> Option<(&str, &str)> {
    match path.rsplit_once('/') {
        Some(split) => Some(split),
        None if path.is_empty() => None,
        None => Some(("", path)),
    }
}

/// Whether `path` is `directory` or lies below it.
#[must_use]
pub fn within(path: &str, directory: &str) -> bool {
    below(path, directory).is_some()
}

/// The rest of a path below a directory; empty for the directory itself.
pub fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    match path.strip_prefix(directory)? {
        "" => Some(""),
        rest if directory.is_empty() => Some(rest),
        rest => rest.strip_prefix('/'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_one_form() {
        assert_eq!(plain("./a//b/").as_deref(), Some("a/b"));
        assert_eq!(plain("a/../b"), None);
        assert_eq!(split("a/b/c"), Some(("a/b", "c")));
        assert_eq!(split("a"), Some(("", "a")));
        assert_eq!(split(""), None);
    }

    #[test]
    fn a_name_that_only_begins_the_same_is_not_below() {
        assert_eq!(below("src/a", "src"), Some("a"));
        assert_eq!(below("src", "src"), Some(""));
        assert_eq!(below("srcs/a", "src"), None);
        assert_eq!(below("a/b", ""), Some("a/b"));
    }
}
