//! Deltas: an object told as copies from another and inserted bytes.

use crate::error::{Fault, Result};

/// The sizes that a delta begins with: of its base and of its result. Returns them and the bytes behind them.
pub(super) fn sizes(delta: &[u8]) -> Result<(u64, u64, &[u8])> {
    let (base, rest) = size(delta)?;
    let (result, rest) = size(rest)?;
    Ok((base, result, rest))
}

fn size(bytes: &[u8]) -> Result<(u64, &[u8])> {
    let mut value: u64 = 0;
    let mut shift: u32 = 0;
    let mut rest = bytes;
    while let Some((byte, after)) = rest.split_first() {
        let part = u64::from(byte & 0x7f);
        if shift >= 57 && part > 0 {
            break;
        }
        value |= part.checked_shl(shift).unwrap_or(0);
        shift = shift.saturating_add(7);
        rest = after;
        if byte & 0x80 == 0 {
            return Ok((value, rest));
        }
        if shift > 63 {
            break;
        }
    }
    Err(damaged("a size is missing"))
}

/// Builds the object of `bytes` bytes.
pub(super) fn apply(base: &[u8], delta: &[u8], bytes: usize) -> Result<Vec<u8>> {
    let mut result = Vec::with_capacity(bytes);
    let mut rest = delta;
    while let Some((command, after)) = rest.split_first() {
        rest = after;
        let piece = if command & 0x80 != 0 {
            let mut number = |bits: std::ops::Range<u32>| -> Result<usize> {
                let mut value: usize = 0;
                for (place, bit) in bits.enumerate() {
                    if command & 1_u8.checked_shl(bit).unwrap_or(0) != 0 {
                        let (byte, after) = rest.split_first().ok_or_else(|| damaged("it ends in a command"))?;
                        rest = after;
                        value |= usize::from(*byte) << place.saturating_mul(8);
                    }
                }
                Ok(value)
            };
            let offset = number(0..4)?;
            let length = match number(4..7)? {
                0 => 0x1_0000,
                length => length,
            };
            let end = offset.checked_add(length).ok_or_else(|| damaged("a copy overflows"))?;
            base.get(offset..end).ok_or_else(|| damaged("a copy reaches beyond its base"))?
        } else if *command == 0 {
            return Err(damaged("a command is unknown"));
        } else {
            let (piece, after) =
                rest.split_at_checked(usize::from(*command)).ok_or_else(|| damaged("it ends in an insertion"))?;
            rest = after;
            piece
        };
        if result.len().saturating_add(piece.len()) > bytes {
            return Err(damaged("it makes more bytes than it says"));
        }
        result.extend_from_slice(piece);
    }
    if result.len() == bytes { Ok(result) } else { Err(damaged("it makes fewer bytes than it says")) }
}

fn damaged(reason: &str) -> Fault {
    Fault::corrupt(format_args!("a delta cannot be applied: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_copies_and_inserts() {
        assert_eq!(apply(b"abcdef", b"\x91\x01\x03\x02XY", 5).unwrap(), b"bcdXY");
        assert_eq!(sizes(b"\x80\x01\x05rest").unwrap(), (128, 5, &b"rest"[..]));
    }

    #[test]
    fn hostile_deltas_are_refused() {
        for (base, delta, bytes) in [
            (&b"ab"[..], &b"\x90\x03"[..], 3),
            (b"ab", b"\x90\x02", 1),
            (b"ab", b"\x90\x02", 3),
            (b"ab", b"\x00", 1),
            (b"ab", b"\x05ab", 5),
            (b"ab", b"\x9f\xff\xff\xff\xff\x01", 1),
            (b"ab", b"\x91", 1),
            (b"ab", b"\x80", 0x1_0000),
        ] {
            assert!(apply(base, delta, bytes).is_err(), "{delta:?}");
        }
        for bytes in [&b""[..], b"\x80", b"\x01", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01"] {
            assert!(sizes(bytes).is_err(), "{bytes:?}");
        }
    }
}
