//! `glob`: files whose path matches a pattern.

use std::ops::ControlFlow;

use globset::{GlobBuilder, GlobMatcher};
use motor_sdk::ToolError;

use crate::{
    limits,
    page::Page,
    walk::{self, Kind, Reach},
    workspace::Workspace,
};

motor_sdk::arguments! {
    /// Arguments of `glob`.
    pub(crate) struct Glob {
        pattern: String,
        path: Option<String>,
    }
}

/// Finds files by their path.
pub(crate) fn glob(workspace: &Workspace, arguments: Glob) -> Result<String, ToolError> {
    let start = workspace.resolve(arguments.path.as_deref().unwrap_or("."))?;
    let pattern = Pattern::new(&arguments.pattern, "pattern")?;
    let mut page = Page::default();
    let (mut shown, mut more) = (0_usize, false);
    let omitted = walk::walk(workspace, &start, Reach::Tree, &mut |entry| {
        if entry.kind == Kind::Directory || !pattern.matches(entry.place.below(&start)) {
            return ControlFlow::Continue(());
        }
        if shown < limits::SHOWN_PATHS && page.push(&entry.place.shown()) {
            shown += 1;
            return ControlFlow::Continue(());
        }
        more = true;
        ControlFlow::Break(())
    })?;
    let mut notes = omitted.notes();
    if more {
        notes.insert(0, format!("more than {shown} files match: narrow `pattern` or `path`"));
    }
    if shown == 0 {
        notes.insert(0, format!("no file in `{}` matches", start.shown()));
    }
    Ok(page.finish(&notes))
}

/// A compiled pattern. It is matched by finite automata, so a hostile one costs no more than its length.
#[derive(Debug)]
pub(crate) struct Pattern {
    matcher: GlobMatcher,
    names_only: bool,
}

impl Pattern {
    /// Compiles a pattern that was given as `argument`.
    ///
    /// # Errors
    /// `bad-input` if it is invalid, `denied` if it leads out of the workspace.
    pub(crate) fn new(text: &str, argument: &str) -> Result<Self, ToolError> {
        let relative = text.strip_prefix("/workspace/").or_else(|| text.strip_prefix("./")).unwrap_or(text);
        if relative.is_empty() {
            return Err(ToolError::bad_input(format!("`{argument}` is empty: `*` matches every name")));
        }
        if relative.chars().nth(limits::PATTERN_CHARS).is_some() {
            return Err(ToolError::bad_input(format!(
                "`{argument}` is longer than {} characters",
                limits::PATTERN_CHARS
            )));
        }
        if relative.starts_with('/') || relative.split('/').any(|name| name == "..") {
            return Err(ToolError::denied(format!(
                "`{argument}` leads out of `/workspace`: use a pattern relative to the workspace"
            )));
        }
        let glob = GlobBuilder::new(relative)
            .literal_separator(true)
            .build()
            .map_err(|error| ToolError::bad_input(format!("`{argument}` is not a valid pattern: {}", error.kind())))?;
        Ok(Self { matcher: glob.compile_matcher(), names_only: !relative.contains('/') })
    }

    /// Whether it matches a path that is relative to where the search began.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let subject = if self.names_only { path.rsplit('/').next().unwrap_or(path) } else { path };
        self.matcher.is_match(subject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, path: &str, expected: bool) {
        assert_eq!(Pattern::new(pattern, "pattern").unwrap().matches(path), expected, "{pattern} {path}");
    }

    #[test]
    fn matches_as_shells_do() {
        check("*.rs", "a.rs", true);
        check("*.rs", "deep/down/a.rs", true);
        check("./*.rs", "deep/down/a.rs", true);
        check("src/*.rs", "src/a.rs", true);
        check("src/*.rs", "src/deep/a.rs", false);
        check("src/**/*.rs", "src/a.rs", true);
        check("src/**/*.rs", "src/deep/down/a.rs", true);
        check("**/*.{csv,tsv}", "x.tsv", true);
        check("/workspace/src/*", "src/a", true);
        check("[a-c]?", "bx", true);
        check("ü*", "über", true);
        check("*.RS", "a.rs", false);
    }

    #[test]
    fn refuses_what_is_no_pattern() {
        let sentence = |pattern: &str| Pattern::new(pattern, "pattern").unwrap_err().sentence().to_owned();
        assert_eq!(sentence(""), "`pattern` is empty: `*` matches every name");
        assert!(sentence("[a").starts_with("`pattern` is not a valid pattern: unclosed character class"));
        assert!(sentence("{a").starts_with("`pattern` is not a valid pattern: unclosed alternate group"));
        assert!(sentence(&"*".repeat(100_000)).contains("longer than 1000 characters"));
        for outside in ["../*", "a/../../*", "/etc/*", "/workspace/../*"] {
            assert!(matches!(Pattern::new(outside, "pattern"), Err(ToolError::Denied(_))), "{outside}");
        }
    }

    #[test]
    fn a_hostile_pattern_takes_linear_time() {
        let pattern = Pattern::new(&format!("{}b", "*a".repeat(400)), "pattern").unwrap();
        assert!(!pattern.matches(&"a".repeat(4_000)));
    }
}
