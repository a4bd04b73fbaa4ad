//! Loose objects: a compressed file each.

use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::Compression;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;
use gix_hash::{ObjectId, Prefix, oid};
use gix_object::Kind;

use super::{Budget, Header, Object, check_size};
use crate::error::{Fault, Result};

/// Bytes of the longest header: a kind, a size and a zero.
const MAX_HEADER_BYTES: usize = 32;

fn place(directory: &Path, id: &oid) -> PathBuf {
    let hex = id.to_hex().to_string();
    let (first, rest) = hex.split_at_checked(2).unwrap_or_default();
    directory.join(first).join(rest)
}

pub(super) fn exists(directory: &Path, id: &oid) -> bool {
    fs::symlink_metadata(place(directory, id)).is_ok_and(|metadata| metadata.is_file())
}

fn open(directory: &Path, id: &oid) -> Result<Option<(ZlibDecoder<BufReader<File>>, Header)>> {
    let Ok(file) = File::open(place(directory, id)) else { return Ok(None) };
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Ok(None);
    }
    let damaged = |reason: &str| Fault::corrupt(format_args!("loose object {id}: {reason}"));
    let mut reader = ZlibDecoder::new(BufReader::new(file));
    let mut head = Vec::new();
    let mut byte = [0];
    loop {
        reader.read_exact(&mut byte).map_err(|_| damaged("its header cannot be read"))?;
        match byte {
            [0] => break,
            [byte] if head.len() < MAX_HEADER_BYTES => head.push(byte),
            _ => return Err(damaged("its header is too long")),
        }
    }
    let text = std::str::from_utf8(&head).map_err(|_| damaged("its header is not text"))?;
    let (kind, bytes) = text.split_once(' ').ok_or_else(|| damaged("its header is not valid"))?;
    let kind = Kind::from_bytes(kind.as_bytes()).map_err(|_| damaged("its kind is unknown"))?;
    let bytes = bytes.parse().map_err(|_| damaged("its size is not a number"))?;
    Ok(Some((reader, Header { kind, bytes })))
}

pub(super) fn header(directory: &Path, id: &oid) -> Result<Option<Header>> {
    Ok(open(directory, id)?.map(|(_, header)| header))
}

pub(super) fn read(directory: &Path, id: &oid, budget: &Budget) -> Result<Option<Object>> {
    let Some((reader, Header { kind, bytes })) = open(directory, id)? else { return Ok(None) };
    let size = check_size(bytes)?;
    budget.inflate(bytes)?;
    let mut data = Vec::with_capacity(size);
    // One byte more than it should have tells whether it has more.
    let read = reader.take(bytes.saturating_add(1)).read_to_end(&mut data);
    if read.is_err() || data.len() != size {
        return Err(Fault::corrupt(format_args!("loose object {id} does not have the size that it says")));
    }
    Ok(Some(Object { kind, data: Rc::new(data) }))
}

pub(super) fn beginning_with(directory: &Path, prefix: &Prefix, most: usize, found: &mut Vec<ObjectId>) -> Result<()> {
    let hex = prefix.as_oid().to_hex().to_string();
    let first = hex.get(..2).unwrap_or_default();
    let mut taken: usize = 0;
    for entry in fs::read_dir(directory.join(first)).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Ok(id) = ObjectId::from_hex(format!("{first}{name}").as_bytes()) else { continue };
        if prefix.cmp_oid(&id).is_eq() {
            found.push(id);
            taken = taken.saturating_add(1);
            if taken >= most {
                break;
            }
        }
    }
    Ok(())
}

/// Compresses an object beside its place and renames it there, so that it is there whole or not at all.
pub(super) fn write(directory: &Path, kind: Kind, bytes: u64, data: &mut dyn Read, id: &ObjectId) -> Result<()> {
    let target = place(directory, id);
    let failed = |error: std::io::Error| Fault::fatal(format_args!("unable to write object {id}: {error}"));
    let parent = target.parent().unwrap_or(directory);
    fs::create_dir_all(parent).map_err(failed)?;
    let temporary = parent.join(format!("tmp_obj_{}", id.to_hex()));
    // The rest of a stopped call is of no use to anyone.
    if fs::symlink_metadata(&temporary).is_ok() {
        fs::remove_file(&temporary).map_err(failed)?;
    }
    let file = OpenOptions::new().write(true).create_new(true).open(&temporary).map_err(failed)?;
    let written = compress(file, kind, bytes, data, id);
    if let Err(fault) = written {
        // The fault is the answer, whether or not the remains can be removed.
        drop(fs::remove_file(&temporary));
        return Err(fault);
    }
    fs::rename(&temporary, &target).map_err(failed)
}

fn compress(file: File, kind: Kind, bytes: u64, data: &mut dyn Read, id: &ObjectId) -> Result<()> {
    let failed = |error: std::io::Error| Fault::fatal(format_args!("unable to write object {id}: {error}"));
    let header = gix_object::encode::loose_header(kind, bytes);
    let mut hasher = gix_hash::hasher(super::HASH);
    hasher.update(&header);
    let mut encoder = ZlibEncoder::new(file, Compression::fast());
    encoder.write_all(&header).map_err(failed)?;
    let mut buffer = vec![0; 64 << 10];
    let mut left = bytes;
    while left > 0 {
        let read = data.read(&mut buffer).map_err(failed)?;
        let piece = buffer.get(..read).unwrap_or_default();
        if piece.is_empty() {
            break;
        }
        left = left.saturating_sub(u64::try_from(read).unwrap_or(u64::MAX));
        hasher.update(piece);
        encoder.write_all(piece).map_err(failed)?;
    }
    encoder.finish().map_err(failed)?;
    // A file that changes while it is read is not the file that was hashed before.
    match hasher.try_finalize() {
        Ok(written) if written == *id => Ok(()),
        _ => Err(Fault::fatal("a file changed while it was added")),
    }
}
