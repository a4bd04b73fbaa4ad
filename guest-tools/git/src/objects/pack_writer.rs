//! A pack for a push: whole objects, without deltas (gitformat-pack(5)). The same objects give the same bytes.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use gix_hash::{Hasher, ObjectId};
use gix_object::Kind;

use super::{HASH, Objects};
use crate::error::{Fault, Result};
use crate::limits::{MAX_PACK_BYTES, MAX_PUSHED_OBJECTS};

/// Bytes of a pack, hashed as they are added.
struct Sink {
    bytes: Vec<u8>,
    hasher: Hasher,
    most: usize,
}

impl Write for Sink {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if self.bytes.len().saturating_add(buffer.len()) > self.most {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        self.hasher.update(buffer);
        self.bytes.extend_from_slice(buffer);
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Objects {
    /// Adds a pack of these objects, in this order, to bytes that are sent in front of it.
    pub(crate) fn pack(&self, ids: &[ObjectId], before: Vec<u8>) -> Result<Vec<u8>> {
        if ids.len() > MAX_PUSHED_OBJECTS {
            return Err(Fault::limit(format_args!("more than {MAX_PUSHED_OBJECTS} objects are new to the remote")));
        }
        let too_large = |_| {
            Fault::limit(format_args!(
                "the objects that are new to the remote take more than {MAX_PACK_BYTES} bytes; push fewer commits at a time \
                 (`git push REMOTE COMMIT:refs/heads/BRANCH`), or ask the owner to push"
            ))
        };
        let most = before.len().saturating_add(MAX_PACK_BYTES);
        let mut sink = Sink { bytes: before, hasher: gix_hash::hasher(HASH), most };
        let count = u32::try_from(ids.len()).map_err(Fault::limit)?;
        sink.write_all(&[&b"PACK\0\0\0\x02"[..], &count.to_be_bytes()].concat()).map_err(too_large)?;
        for id in ids {
            let object = self.read(id)?;
            sink.write_all(&header(object.kind, object.data.len())).map_err(too_large)?;
            let mut encoder = ZlibEncoder::new(&mut sink, Compression::default());
            encoder.write_all(&object.data).and_then(|()| encoder.finish().map(drop)).map_err(too_large)?;
        }
        let Sink { mut bytes, hasher, .. } = sink;
        bytes.extend_from_slice(hasher.try_finalize().map_err(Fault::fatal)?.as_slice());
        Ok(bytes)
    }
}

/// The kind and size in front of an object: four bits of the size, then seven in each byte.
fn header(kind: Kind, size: usize) -> Vec<u8> {
    let kind: u8 = match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    };
    let low = |size: usize, bits: usize| u8::try_from(size & bits).unwrap_or_default();
    let mut bytes = Vec::new();
    let (mut byte, mut rest) = (kind << 4 | low(size, 0x0f), size >> 4);
    while rest > 0 {
        bytes.push(byte | 0x80);
        (byte, rest) = (low(rest, 0x7f), rest >> 7);
    }
    bytes.push(byte);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_git_reads_them() {
        assert_eq!(header(Kind::Commit, 0), [0x10]);
        assert_eq!(header(Kind::Blob, 15), [0x3f]);
        assert_eq!(header(Kind::Blob, 16), [0xb0, 0x01]);
        assert_eq!(header(Kind::Tree, 2_047), [0xaf, 0x7f]);
        assert_eq!(header(Kind::Tag, 2_048), [0xc0, 0x80, 0x01]);
    }
}
