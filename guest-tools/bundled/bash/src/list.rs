//! `ls`, as it writes into a pipe: one name on a line, in the order of their bytes.
//!
//! The interpreter's own has no `-r`, `-p` and no entries `.` and `..`, and scripts use those.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use bashkit::{Builtin, BuiltinContext, ExecResult, FileType, Metadata, async_trait, normalize_path, vfs_join};
use chrono::DateTime;

/// The command `ls` of the shell.
pub(crate) struct List;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Order {
    #[default]
    Name,
    Time,
    Size,
    None,
}

/// The paths and options of a command line.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Options {
    paths: Vec<String>,
    /// `-a`: also names with a dot in front, and `.` and `..`.
    all: bool,
    /// `-A`: also names with a dot in front.
    almost_all: bool,
    long: bool,
    human: bool,
    reverse: bool,
    order: Order,
    /// `-d`: directories themselves instead of their entries.
    directory: bool,
    /// `-p`, `-F`: a mark behind a name tells its kind.
    slash: bool,
    classify: bool,
    recursive: bool,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut only_paths = false;
        for argument in arguments {
            match argument.as_str() {
                path if only_paths || path == "-" || !path.starts_with('-') => options.paths.push(path.to_owned()),
                "--" => only_paths = true,
                long if long.starts_with("--") => options.long_option(long)?,
                short => short.chars().skip(1).try_for_each(|letter| options.letter(letter))?,
            }
        }
        if options.paths.is_empty() {
            options.paths.push(".".to_owned());
        }
        Ok(options)
    }

    fn long_option(&mut self, option: &str) -> Result<(), String> {
        let letter = match option.split('=').next().unwrap_or_default() {
            "--all" => 'a',
            "--almost-all" => 'A',
            "--directory" => 'd',
            "--reverse" => 'r',
            "--recursive" => 'R',
            "--human-readable" => 'h',
            "--classify" => 'F',
            "--color" | "--group-directories-first" | "--time-style" => return Ok(()),
            "--sort" => match option.strip_prefix("--sort=") {
                Some("time") => 't',
                Some("size") => 'S',
                Some("none") => 'U',
                Some("name") => '1',
                _ => return Err(format!("ls: unrecognized option '{option}'\n")),
            },
            _ => return Err(format!("ls: unrecognized option '{option}'\n")),
        };
        self.letter(letter)
    }

    fn letter(&mut self, letter: char) -> Result<(), String> {
        match letter {
            'a' => self.all = true,
            'A' => self.almost_all = true,
            'l' | 'n' | 'o' | 'g' => self.long = true,
            'h' => self.human = true,
            'r' => self.reverse = true,
            't' => self.order = Order::Time,
            'S' => self.order = Order::Size,
            'U' | 'f' => self.order = Order::None,
            'd' => self.directory = true,
            'p' => self.slash = true,
            'F' => self.classify = true,
            'R' => self.recursive = true,
            // One column, no colours, names as they are: this happens anyway.
            '1' | 'C' | 'x' | 'm' | 'N' | 'G' | 'k' | 'b' | 'q' | 's' | 'H' | 'L' => {}
            other => return Err(format!("ls: invalid option -- '{other}'\n")),
        }
        Ok(())
    }
}

/// An entry that is to be listed.
struct Entry {
    name: String,
    metadata: Metadata,
    target: Option<PathBuf>,
}

#[async_trait]
impl Builtin for List {
    async fn execute(&self, context: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let options = match Options::parse(context.args) {
            Ok(options) => options,
            Err(message) => return Ok(ExecResult::err(message, 2)),
        };
        let mut listing = Listing { options: &options, context: &context, out: String::new(), err: String::new() };
        listing.run().await;
        let Listing { out, err, .. } = listing;
        let mut result = ExecResult::ok(out);
        result.exit_code = if err.is_empty() { 0 } else { 2 };
        result.stderr = err.into();
        Ok(result)
    }
}

struct Listing<'a> {
    options: &'a Options,
    context: &'a BuiltinContext<'a>,
    out: String,
    err: String,
}

impl Listing<'_> {
    async fn run(&mut self) {
        let (mut files, mut directories) = (Vec::new(), Vec::new());
        for path in &self.options.paths {
            // As `ls` does, a link to a directory is followed unless it is shown itself.
            let place = self.place(path);
            let found = if self.options.long || self.options.directory {
                self.context.fs.lstat(&place).await
            } else {
                self.context.fs.stat(&place).await
            };
            match found {
                Ok(metadata) if metadata.file_type.is_dir() && !self.options.directory => {
                    directories.push(path.clone())
                }
                Ok(metadata) => files.push(self.entry(path.clone(), metadata, &place).await),
                Err(error) => self.fail("access", path, &error),
            }
        }
        self.print(&mut files);
        directories.sort();
        let mut first = files.is_empty();
        let headings = self.options.recursive || self.options.paths.len() > 1;
        // The directories left to list, the next one last.
        let mut pending: Vec<String> = directories.into_iter().rev().collect();
        while let Some(path) = pending.pop() {
            if !first {
                self.out.push('\n');
            }
            first = false;
            if headings {
                self.out.push_str(&format!("{path}:\n"));
            }
            pending.extend(self.directory(&path).await.into_iter().rev());
        }
    }

    /// Lists one directory. Returns those in it, when they are to be listed too.
    async fn directory(&mut self, path: &str) -> Vec<String> {
        let place = self.place(path);
        let found = match self.context.fs.read_dir(&place).await {
            Ok(found) => found,
            Err(error) => {
                self.fail("open directory", path, &error);
                return Vec::new();
            }
        };
        let mut entries = Vec::new();
        if self.options.all {
            for (name, place) in [(".", place.as_path()), ("..", place.parent().unwrap_or(Path::new("/")))] {
                if let Ok(metadata) = self.context.fs.stat(place).await {
                    entries.push(Entry { name: name.to_owned(), metadata, target: None });
                }
            }
        }
        let hidden = self.options.all || self.options.almost_all;
        for entry in found.into_iter().filter(|entry| hidden || !entry.name.starts_with('.')) {
            let below = place.join(&entry.name);
            entries.push(self.entry(entry.name, entry.metadata, &below).await);
        }
        if self.options.long {
            let blocks: u64 = entries.iter().map(|entry| entry.metadata.size.div_ceil(4096).saturating_mul(4)).sum();
            self.out.push_str(&format!("total {blocks}\n"));
        }
        self.print(&mut entries);
        if !self.options.recursive {
            return Vec::new();
        }
        let below =
            entries.iter().filter(|entry| entry.metadata.file_type.is_dir() && entry.name != "." && entry.name != "..");
        below.map(|entry| format!("{}/{}", path.trim_end_matches('/'), entry.name)).collect()
    }

    async fn entry(&self, name: String, metadata: Metadata, place: &Path) -> Entry {
        let link = self.options.long && metadata.file_type.is_symlink();
        let target = if link { self.context.fs.read_link(place).await.ok() } else { None };
        Entry { name, metadata, target }
    }

    fn print(&mut self, entries: &mut [Entry]) {
        match self.options.order {
            Order::Name => entries.sort_by(|one, other| one.name.cmp(&other.name)),
            Order::Time => entries.sort_by(|one, other| {
                other.metadata.modified.cmp(&one.metadata.modified).then_with(|| one.name.cmp(&other.name))
            }),
            Order::Size => entries.sort_by(|one, other| {
                other.metadata.size.cmp(&one.metadata.size).then_with(|| one.name.cmp(&other.name))
            }),
            Order::None => {}
        }
        if self.options.reverse {
            entries.reverse();
        }
        let sizes: Vec<String> = entries.iter().map(|entry| self.size(entry.metadata.size)).collect();
        let width = sizes.iter().map(String::len).max().unwrap_or_default();
        for (entry, size) in entries.iter().zip(sizes) {
            if self.options.long {
                self.out.push_str(&long(&entry.metadata, &size, width));
            }
            self.out.push_str(&entry.name);
            self.out.push_str(self.mark(&entry.metadata));
            if let Some(target) = &entry.target {
                self.out.push_str(&format!(" -> {}", target.display()));
            }
            self.out.push('\n');
        }
    }

    fn mark(&self, metadata: &Metadata) -> &'static str {
        match metadata.file_type {
            FileType::Directory if self.options.slash || self.options.classify => "/",
            FileType::Symlink if self.options.classify && !self.options.long => "@",
            FileType::Fifo if self.options.classify => "|",
            FileType::File if self.options.classify && metadata.mode & 0o111 != 0 => "*",
            _ => "",
        }
    }

    fn size(&self, bytes: u64) -> String {
        if !self.options.human || bytes < 1024 {
            return bytes.to_string();
        }
        // Tenths, rounded up as `ls` does, below ten of a unit; whole ones above.
        let (mut unit, mut names) = (1024_u64, "KMGT".chars());
        let mut name = names.next().unwrap_or('K');
        while let Some(next) = names.next().filter(|_| bytes.div_ceil(unit) >= 1024) {
            unit = unit.saturating_mul(1024);
            name = next;
        }
        let tenths = bytes.saturating_mul(10).div_ceil(unit);
        if tenths < 100 {
            format!("{}.{}{name}", tenths / 10, tenths % 10)
        } else {
            format!("{}{name}", bytes.div_ceil(unit))
        }
    }

    fn place(&self, path: &str) -> PathBuf {
        normalize_path(&vfs_join(self.context.cwd, path))
    }

    fn fail(&mut self, what: &str, path: &str, error: &bashkit::Error) {
        let reason = match error {
            bashkit::Error::Io(io) if io.kind() == std::io::ErrorKind::NotFound => {
                "No such file or directory".to_owned()
            }
            other => other.to_string(),
        };
        self.err.push_str(&format!("ls: cannot {what} '{path}': {reason}\n"));
    }
}

/// The columns that `-l` puts in front of a name. There are no owners here: everything is the agent's.
fn long(metadata: &Metadata, size: &str, width: usize) -> String {
    let kind = match metadata.file_type {
        FileType::Directory => 'd',
        FileType::Symlink => 'l',
        FileType::Fifo => 'p',
        FileType::File => '-',
    };
    let mode: String = (0..9)
        .rev()
        .zip("rwxrwxrwx".chars())
        .map(|(bit, letter)| if metadata.mode >> bit & 1 == 1 { letter } else { '-' })
        .collect();
    let seconds = metadata.modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let time = i64::try_from(seconds).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0)).unwrap_or_default();
    format!("{kind}{mode} 1 agent agent {size:>width$} {} ", time.format("%Y-%m-%d %H:%M"))
}
