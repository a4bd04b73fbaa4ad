//! `stat`: the metadata of a file. The interpreter's own prints unknown sequences verbatim.

use std::path::Path;

use bashkit::{Builtin, BuiltinContext, ExecResult, FileType, Metadata, async_trait, normalize_path, vfs_join};
use chrono::{DateTime, Utc};

/// The command `stat` of the shell.
pub(crate) struct Stat;

/// The format and options of a command line.
struct Options<'a> {
    format: &'a str,
    /// `--printf`: escapes count, and no line ends by itself.
    escapes: bool,
    follows: bool,
    files: Vec<&'a str>,
}

/// The output of `stat` without a format.
const USUAL: &str = "  File: %n\n  Size: %s\t%F\nAccess: (%04a/%A)\nAccess: %x\nModify: %y\nChange: %z";

impl<'a> Options<'a> {
    fn parse(arguments: &'a [String]) -> Result<Self, String> {
        let mut options = Self { format: USUAL, escapes: false, follows: false, files: Vec::new() };
        let mut left = arguments.iter();
        while let Some(argument) = left.next() {
            if let Some(format) = argument.strip_prefix("--format=") {
                options.format = format;
            } else if let Some(format) = argument.strip_prefix("--printf=") {
                (options.format, options.escapes) = (format, true);
            } else if let Some(letters) = argument.strip_prefix("-c").or_else(|| argument.strip_prefix("-Lc")) {
                options.follows |= argument.starts_with("-L");
                options.format = match letters {
                    "" => left.next().ok_or("option requires an argument -- 'c'")?,
                    format => format,
                };
            } else if argument == "-L" || argument == "--dereference" {
                options.follows = true;
            } else if argument == "--" {
                options.files.extend(left.by_ref().map(String::as_str));
            } else if argument.len() > 1 && argument.starts_with('-') {
                return Err(format!("unrecognized option '{argument}': there are -c, --format, --printf and -L"));
            } else {
                options.files.push(argument);
            }
        }
        if options.files.is_empty() { Err("missing operand".to_owned()) } else { Ok(options) }
    }
}

#[async_trait]
impl Builtin for Stat {
    async fn execute(&self, context: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let options = match Options::parse(context.args) {
            Ok(options) => options,
            Err(message) => return Ok(ExecResult::err(format!("stat: {message}\n"), 1)),
        };
        let (mut text, mut errors) = (String::new(), String::new());
        for file in options.files {
            let path = normalize_path(&vfs_join(context.cwd, file));
            let found = if options.follows { context.fs.stat(&path).await } else { context.fs.lstat(&path).await };
            let Ok(found) = found else {
                errors.push_str(&format!("stat: cannot statx '{file}': No such file or directory\n"));
                continue;
            };
            match described(options.format, options.escapes, file, &path, &found) {
                Ok(line) => text.push_str(&line),
                Err(message) => {
                    errors.push_str(&format!("stat: {message}\n"));
                    break;
                }
            }
            if !options.escapes {
                text.push('\n');
            }
        }
        let mut result = ExecResult::ok(text);
        if !errors.is_empty() {
            result.exit_code = 1;
            result.stderr = errors.into();
        }
        Ok(result)
    }
}

fn described(format: &str, escapes: bool, name: &str, path: &Path, found: &Metadata) -> Result<String, String> {
    let mut text = String::new();
    let mut left = format.chars();
    while let Some(character) = left.next() {
        match character {
            '\\' if escapes => match left.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('\\') => text.push('\\'),
                Some('"') => text.push('"'),
                other => return Err(format!("escape '\\{}' is not known here", other.unwrap_or(' '))),
            },
            '%' => {
                let mut width = String::new();
                let sequence = loop {
                    match left.next() {
                        Some(digit) if digit.is_ascii_digit() || digit == '-' => width.push(digit),
                        Some(letter) => break letter,
                        None => break '%',
                    }
                };
                let value = value(sequence, name, path, found)
                    .ok_or_else(|| format!("'%{width}{sequence}' is not known of files here"))?;
                text.push_str(&wide(&value, &width)?);
            }
            other => text.push(other),
        }
    }
    Ok(text)
}

fn wide(value: &str, width: &str) -> Result<String, String> {
    let (left, zeros) = (width.starts_with('-'), width.starts_with('0'));
    let digits = width.trim_start_matches(['-', '0']);
    let width: usize = if digits.is_empty() { 0 } else { digits.parse().map_err(|_| "the width is no number")? };
    if width > 200 {
        return Err("the width is too large".to_owned());
    }
    Ok(match (left, zeros) {
        (true, _) => format!("{value:<width$}"),
        (false, true) => format!("{value:0>width$}"),
        (false, false) => format!("{value:>width$}"),
    })
}

/// There is one owner, one group and one link to each file, and no time but that of the last change.
fn value(sequence: char, name: &str, path: &Path, found: &Metadata) -> Option<String> {
    let changed = DateTime::<Utc>::from(found.modified);
    Some(match sequence {
        '%' => "%".to_owned(),
        'n' => name.to_owned(),
        'N' => format!("'{name}'"),
        's' => found.size.to_string(),
        'b' => found.size.div_ceil(512).to_string(),
        'B' => "512".to_owned(),
        'h' => "1".to_owned(),
        'a' => format!("{:o}", found.mode & 0o7777),
        'A' => permissions(found),
        'F' => match found.file_type {
            FileType::Directory => "directory",
            FileType::Symlink => "symbolic link",
            FileType::File if found.size == 0 => "regular empty file",
            FileType::File => "regular file",
            FileType::Fifo => "fifo",
        }
        .to_owned(),
        'u' | 'g' => "1000".to_owned(),
        'U' | 'G' => "agent".to_owned(),
        'm' => if path.starts_with("/tmp") { "/tmp" } else { "/" }.to_owned(),
        'x' | 'y' | 'z' => changed.format("%Y-%m-%d %H:%M:%S%.9f +0000").to_string(),
        'X' | 'Y' | 'Z' => changed.timestamp().to_string(),
        'w' => "-".to_owned(),
        'W' => "0".to_owned(),
        _ => return None,
    })
}

fn permissions(found: &Metadata) -> String {
    let kind = match found.file_type {
        FileType::Directory => 'd',
        FileType::Symlink => 'l',
        FileType::Fifo => 'p',
        FileType::File => '-',
    };
    let bits = (0..9).map(|bit| match found.mode & (0o400 >> bit) {
        0 => '-',
        _ => ['r', 'w', 'x'].get(bit % 3).copied().unwrap_or('-'),
    });
    std::iter::once(kind).chain(bits).collect()
}
