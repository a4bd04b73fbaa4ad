//! `read`: a page of a text file. The file is streamed, so its size does not matter; a file that is not text is
//! answered with its kind, since a page of replacement characters would tell nothing.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
};

use motor_sdk::ToolError;

use crate::{
    fault, limits,
    lines::{self, Line},
    page::Page,
    similar,
    workspace::{Place, Workspace},
};

const BUFFER_BYTES: usize = 64 * 1024;

/// Some editors begin UTF-8 with it; it is not part of the text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

motor_sdk::arguments! {
    /// Arguments of `read`.
    pub(crate) struct Read {
        path: String,
        offset: Option<u64>,
        limit: Option<u64>,
    }
}

/// Shows a page of a file.
pub(crate) fn read(workspace: &Workspace, arguments: Read) -> Result<String, ToolError> {
    let place = workspace.resolve(&arguments.path)?;
    let (file, size) = open(workspace, &place)?;
    let shown = place.shown();
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    let beginning = reader.fill_buf().map_err(|error| fault::of(&error, &shown))?;
    if beginning.is_empty() || beginning == BYTE_ORDER_MARK {
        return Ok(format!("[`{shown}` is empty]"));
    }
    if lines::is_binary(beginning) {
        return Ok(format!("[`{shown}` is not text: {}, {size} bytes; `read` shows text only]", kind(beginning)));
    }
    if beginning.starts_with(BYTE_ORDER_MARK) {
        reader.consume(BYTE_ORDER_MARK.len());
    }

    let first = arguments.offset.unwrap_or(1).max(1);
    let most = limits::ANSWER_LINES as u64;
    let wanted = match arguments.limit {
        Some(0) => return Err(ToolError::bad_input("`limit` is 0: ask for at least one line")),
        limit => limit.unwrap_or(most).min(most),
    };
    let skipped = lines::skip(&mut reader, first - 1).map_err(|error| fault::of(&error, &shown))?;
    page(&mut reader, &shown, first, wanted).map_err(|error| match error {
        Failure::Io(error) => fault::of(&error, &shown),
        Failure::PastTheEnd => ToolError::bad_input(format!(
            "`offset` {first} is past the end: `{shown}` has {skipped} line{}",
            if skipped == 1 { "" } else { "s" }
        )),
    })
}

enum Failure {
    Io(std::io::Error),
    PastTheEnd,
}

fn page(reader: &mut impl BufRead, shown: &str, first: u64, wanted: u64) -> Result<String, Failure> {
    let mut page = Page::default();
    let mut notes = Vec::new();
    let (mut all_valid, mut any_crlf) = (true, false);
    let mut number = first;
    let mut line = Line::default();
    loop {
        // Four bytes for each character is all that can be needed.
        if !lines::next(reader, &mut line, limits::LINE_CHARS * 4).map_err(Failure::Io)? {
            if number == first && first > 1 {
                return Err(Failure::PastTheEnd);
            }
            break;
        }
        let (text, valid) = lines::text(&line.kept, line.is_cut(), limits::LINE_CHARS);
        let mut numbered = format!("{number:>6}\t{text}");
        if line.is_cut() || text.chars().count() < String::from_utf8_lossy(&line.kept).chars().count() {
            numbered.push_str(&format!("… [line cut: {} bytes in all]", line.length));
        }
        if number - first >= wanted || !page.push(&numbered) {
            notes.push(format!("`{shown}` goes on: continue with `offset` {number}"));
            break;
        }
        all_valid &= valid;
        any_crlf |= line.crlf;
        number += 1;
    }
    if any_crlf {
        notes.push("lines end in CRLF".to_owned());
    }
    if !all_valid {
        notes.push("not valid UTF-8: bytes that are no text are shown as \u{fffd}".to_owned());
    }
    Ok(page.finish(&notes))
}

/// Opens a regular file for reading; its size in bytes comes with it.
///
/// # Errors
/// `missing`, with a similar name if there is one, or `bad-input` for anything but a regular file: opening a pipe
/// would wait for ever.
pub(crate) fn open(workspace: &Workspace, place: &Place) -> Result<(File, u64), ToolError> {
    let shown = place.shown();
    let path = workspace.path(place);
    let metadata = match fs::symlink_metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let meant = similar::name_beside(workspace, place);
            let meant = meant.map(|other| format!(", did you mean `{other}`?")).unwrap_or_default();
            return Err(ToolError::missing(format!("`{shown}` does not exist{meant}")));
        }
        Err(error) => return Err(fault::of(&error, &shown)),
    };
    if metadata.is_dir() {
        return Err(ToolError::bad_input(format!("`{shown}` is a directory: use `list`")));
    }
    if !metadata.is_file() {
        return Err(ToolError::bad_input(format!("`{shown}` is not a regular file")));
    }
    let file = File::open(&path).map_err(|error| fault::of(&error, &shown))?;
    Ok((file, metadata.len()))
}

/// The probable kind of a binary file.
fn kind(beginning: &[u8]) -> &'static str {
    const KINDS: &[(&[u8], &str)] = &[
        (b"\x89PNG", "a PNG image"),
        (b"\xff\xd8\xff", "a JPEG image"),
        (b"GIF8", "a GIF image"),
        (b"%PDF", "a PDF document"),
        (b"PK\x03\x04", "a ZIP archive, or a document made of one"),
        (b"\x1f\x8b", "data compressed with gzip"),
        (b"\0asm", "WebAssembly"),
        (b"\x7fELF", "a program"),
        (b"SQLite format 3", "an SQLite database"),
        (b"\xff\xfe", "probably text in UTF-16"),
        (b"\xfe\xff", "probably text in UTF-16"),
    ];
    KINDS.iter().find(|(magic, _)| beginning.starts_with(magic)).map_or("binary data", |(_, kind)| kind)
}
