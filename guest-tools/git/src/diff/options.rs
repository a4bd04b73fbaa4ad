//! The options that all commands with differences share.

use crate::error::{Fault, Result};
use crate::options::{Argument, Arguments, number};

/// The parts of differences that are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Patch,
    Stat,
    NumStat,
    ShortStat,
    NameOnly,
    NameStatus,
    Raw,
    Summary,
}

/// How differences are found and printed.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Empty: the command's default.
    pub formats: Vec<Format>,
    /// Nothing is printed: `-s`, `--no-patch`.
    pub nothing: bool,
    pub context: usize,
    /// The similarity of renames in percent; `None` to look for none.
    pub renames: Option<u32>,
    /// `-z`: names as they are, each with a zero byte behind it.
    pub zero: bool,
    pub full_index: bool,
    /// `--abbrev`: digits of short names.
    pub digits: Option<usize>,
    pub reverse: bool,
    /// `-a`: compare binary files as text.
    pub text: bool,
    pub prefixes: bool,
    pub exit_code: bool,
    pub quiet: bool,
    /// The kinds of differences that `--diff-filter` keeps.
    pub filter: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            formats: Vec::new(),
            nothing: false,
            context: 3,
            renames: Some(50),
            zero: false,
            full_index: false,
            digits: None,
            reverse: false,
            text: false,
            prefixes: true,
            exit_code: false,
            quiet: false,
            filter: None,
        }
    }
}

impl Options {
    pub(crate) fn has(&self, format: Format) -> bool {
        self.formats.contains(&format)
    }

    fn add(&mut self, format: Format) {
        self.nothing = false;
        if !self.has(format) {
            self.formats.push(format);
        }
    }

    /// Takes an option that is one of these. Returns whether it was.
    pub(crate) fn take(&mut self, argument: &Argument, arguments: &mut Arguments) -> Result<bool> {
        match argument {
            Argument::Option(name) => self.take_plain(name, arguments),
            Argument::Valued(name, value) => self.take_valued(name, value),
            _ => Ok(false),
        }
    }

    fn take_plain(&mut self, name: &str, arguments: &mut Arguments) -> Result<bool> {
        match name {
            "-p" | "-u" | "--patch" => self.add(Format::Patch),
            "-s" | "--no-patch" => {
                self.formats.clear();
                self.nothing = true;
            }
            "--stat" => self.add(Format::Stat),
            "--numstat" => self.add(Format::NumStat),
            "--shortstat" => self.add(Format::ShortStat),
            "--summary" => self.add(Format::Summary),
            "--patch-with-stat" => {
                self.add(Format::Patch);
                self.add(Format::Stat);
            }
            "--name-only" => self.add(Format::NameOnly),
            "--name-status" => self.add(Format::NameStatus),
            "--raw" => self.add(Format::Raw),
            "-z" => self.zero = true,
            "-R" => self.reverse = true,
            "-a" | "--text" => self.text = true,
            "-M" | "--find-renames" => self.renames = Some(50),
            "--no-renames" => self.renames = None,
            "--full-index" => self.full_index = true,
            "--no-prefix" => self.prefixes = false,
            "--exit-code" => self.exit_code = true,
            "--quiet" => {
                self.quiet = true;
                self.exit_code = true;
            }
            "-U" | "--unified" => self.context = context(&arguments.value(name)?)?,
            "--diff-filter" => self.filter = Some(arguments.value(name)?),
            // There is no terminal, no program for differences and no converter: these options ask for the usual behaviour.
            "--no-color" | "--no-ext-diff" | "--no-textconv" | "--indent-heuristic" | "--myers"
            | "--default-prefix" | "--no-color-moved" | "--histogram" | "--patience" | "--minimal" => {}
            "--color" | "--color-words" | "--ext-diff" | "--textconv" => {
                return Err(Fault::unsupported(format_args!("the option `{name}`")));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_valued(&mut self, name: &str, value: &str) -> Result<bool> {
        match name {
            "-U" | "--unified" => {
                self.context = context(value)?;
                self.add(Format::Patch);
            }
            "-M" | "--find-renames" => self.renames = Some(percent(value)?),
            "--diff-filter" => self.filter = Some(value.to_owned()),
            "--stat" => self.add(Format::Stat),
            "--color" if matches!(value, "never" | "auto" | "false") => {}
            "--abbrev" => self.digits = Some(number(name, value)?),
            "--diff-algorithm" | "--ignore-submodules" | "--submodule" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn context(value: &str) -> Result<usize> {
    Ok(number("-U", value)?.min(1_000_000))
}

fn percent(value: &str) -> Result<u32> {
    let bad = || Fault::fatal(format_args!("invalid similarity `{value}`"));
    let digits = value.trim_end_matches('%');
    let number: u32 = digits.parse().map_err(|_| bad())?;
    // Without the sign, digits are behind the decimal point.
    let percent = if value.ends_with('%') || digits.len() == 2 {
        number
    } else {
        let scale = 10_u32.checked_pow(u32::try_from(digits.len()).unwrap_or(9)).ok_or_else(bad)?;
        number.saturating_mul(100) / scale.max(1)
    };
    Ok(percent.min(100))
}
