//! Colours, where they are wanted.

/// When colours are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Colours even without a terminal.
    Always,
    /// Plain text, even on a terminal.
    Never,
}

impl ColorChoice {
    /// Whether a stream gets colours.
    #[must_use]
    pub fn wants(self, terminal: bool, env: &dyn Fn(&str) -> Option<String>) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                let refused = env("NO_COLOR").is_some_and(|value| !value.is_empty());
                terminal && !refused && env("TERM").as_deref() != Some("dumb")
            }
        }
    }
}

/// Puts colours around text, or leaves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Palette {
    enabled: bool,
}

impl Palette {
    /// With colours or without.
    #[must_use]
    pub fn new(enabled: bool) -> Self {
        Self { enabled }
    }

    /// Whether there are colours.
    #[must_use]
    pub fn enabled(self) -> bool {
        self.enabled
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.enabled { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Dims text of less importance.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// For headings and names.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Red, for failures.
    #[must_use]
    pub fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// Green, for success.
    #[must_use]
    pub fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Yellow, for warnings and waiting runs.
    #[must_use]
    pub fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// Cyan, for hints.
    #[must_use]
    pub fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_only_where_they_are_wanted() {
        let none = |_: &str| None;
        let refuses = |name: &str| (name == "NO_COLOR").then(|| "1".to_owned());
        let empty = |name: &str| (name == "NO_COLOR").then(String::new);
        let dumb = |name: &str| (name == "TERM").then(|| "dumb".to_owned());
        assert!(ColorChoice::Auto.wants(true, &none));
        assert!(ColorChoice::Auto.wants(true, &empty));
        assert!(!ColorChoice::Auto.wants(true, &refuses));
        assert!(!ColorChoice::Auto.wants(true, &dumb));
        assert!(!ColorChoice::Auto.wants(false, &none));
        assert!(ColorChoice::Always.wants(false, &refuses));
        assert!(!ColorChoice::Never.wants(true, &none));
        assert_eq!(Palette::new(false).red("x"), "x");
        assert_eq!(Palette::new(true).red("x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
