//! The functions behind `workspace`. Each answers with its value, or with a failure for the JavaScript side to throw.

#[cfg_attr(target_family = "wasm", path = "files/wasi.rs")]
#[cfg_attr(not(target_family = "wasm"), path = "files/nowhere.rs")]
mod directory;

use rquickjs::{Ctx, Function, IntoJs, Object, Result, TypedArray, Value};

use super::failure::Failure;
use super::paths;
use super::requests::body_of;

/// Bytes of a file that are read at once. Text takes two bytes a character of the 64 MiB that a program has.
const MAX_READ_BYTES: u64 = 8 << 20;
/// Entries of a directory that are listed.
const MAX_ENTRIES: usize = 10_000;

/// Name, kind and size of something in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    name: String,
    kind: &'static str,
    size: u64,
}

/// How to write to a file that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Replace,
    Append,
}

/// Adds the functions for the JavaScript side.
pub fn install<'js>(ctx: &Ctx<'js>, natives: &Object<'js>) -> Result<()> {
    let read = |ctx: Ctx<'js>, path: String, offset: f64, length: f64| {
        let bytes = paths::parse(&path).and_then(|path| read(&path, offset, length));
        bytes.map(|bytes| TypedArray::<u8>::new(ctx.clone(), bytes)).or_failure(&ctx)
    };
    natives.set("read", Function::new(ctx.clone(), read)?)?;
    let write = |ctx: Ctx<'js>, path: String, bytes: Value<'js>, appends: bool| {
        let mode = if appends { Mode::Append } else { Mode::Replace };
        let written = paths::parse_to_change(&path)
            .and_then(|path| body_of(&bytes).and_then(|bytes| directory::write(&path, &bytes, mode)));
        written.map(Ok).or_failure(&ctx)
    };
    natives.set("write", Function::new(ctx.clone(), write)?)?;
    let list = |ctx: Ctx<'js>, path: String| {
        let entries = paths::parse(&path).and_then(|path| directory::list(&path, MAX_ENTRIES));
        entries.map(|entries| entries_of(&ctx, entries)).or_failure(&ctx)
    };
    natives.set("list", Function::new(ctx.clone(), list)?)?;
    let stat = |ctx: Ctx<'js>, path: String| {
        let entry = paths::parse(&path).and_then(|path| directory::stat(&path));
        entry.map(|entry| entry_of(&ctx, entry)).or_failure(&ctx)
    };
    natives.set("stat", Function::new(ctx.clone(), stat)?)?;
    let remove = |ctx: Ctx<'js>, path: String| {
        paths::parse_to_change(&path).and_then(|path| directory::remove(&path)).map(Ok).or_failure(&ctx)
    };
    natives.set("remove", Function::new(ctx.clone(), remove)?)?;
    let make = |ctx: Ctx<'js>, path: String| {
        paths::parse_to_change(&path).and_then(|path| directory::make(&path)).map(Ok).or_failure(&ctx)
    };
    natives.set("makeDirectory", Function::new(ctx.clone(), make)?)
}

/// Reads a part of a file: a negative length is all from there on.
fn read(path: &str, offset: f64, length: f64) -> std::result::Result<Vec<u8>, Failure> {
    let size = directory::stat(path)?;
    if size.kind != "file" {
        return Err(Failure::new("bad_input", format_args!("`{path}` is a {}, not a file", size.kind)));
    }
    // A float that is out of range becomes the nearest end of it.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating is what is meant")]
    let (offset, wanted) = (offset as u64, (length >= 0.0).then_some(length as u64));
    let left = size.size.saturating_sub(offset);
    let length = wanted.map_or(left, |wanted| wanted.min(left));
    if length > MAX_READ_BYTES {
        return Err(Failure::new(
            "limit",
            format_args!(
                "`{path}` has {} bytes and at most {MAX_READ_BYTES} are read at once: read parts of it with \
                 `workspace.readBytes(path, {{ offset, length }})`",
                size.size
            ),
        ));
    }
    directory::read(path, offset, length)
}

fn entries_of<'js>(ctx: &Ctx<'js>, entries: Vec<Entry>) -> Result<Vec<Object<'js>>> {
    entries.into_iter().map(|entry| entry_of(ctx, entry)).collect()
}

fn entry_of<'js>(ctx: &Ctx<'js>, entry: Entry) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    object.set("name", entry.name)?;
    object.set("type", entry.kind)?;
    #[expect(clippy::cast_precision_loss, reason = "the workspace is smaller than 2^53 bytes")]
    object.set("size", entry.size as f64)?;
    Ok(object)
}

/// A value for JavaScript, or the failure as an object.
trait OrFailure<'js> {
    fn or_failure(self, ctx: &Ctx<'js>) -> Result<Value<'js>>;
}

impl<'js, T: IntoJs<'js>> OrFailure<'js> for std::result::Result<Result<T>, Failure> {
    fn or_failure(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        match self {
            Ok(value) => value?.into_js(ctx),
            Err(failure) => failure.into_object(ctx)?.into_js(ctx),
        }
    }
}
