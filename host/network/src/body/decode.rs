//! Decompresses a response that came compressed although no compression was requested.
//!
//! Survives bombs: a little input is decoded at a time, and the output is counted before more goes in. An unknown encoding is
//! an error, because a secret inside it would not be found.

use std::io::Write as _;

use bytes::{Buf as _, Bytes};
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::{HeaderMap, header};

/// Input that is decoded at a time. Deflate makes at most 1,032 bytes of one.
const STEP: usize = 1 << 10;

/// A decoder that is fed.
pub(crate) enum Decoder {
    Gzip(MultiGzDecoder<Vec<u8>>),
    /// `deflate` is zlib's frame (RFC 9110, section 8.4.1.2) or, from some servers, the bare stream. The first byte tells.
    Unknown,
    Zlib(ZlibDecoder<Vec<u8>>),
    Bare(DeflateDecoder<Vec<u8>>),
}

impl Decoder {
    /// The decoder for a response; none when it is not encoded. The error is a reason.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Option<Self>, String> {
        let encodings: Vec<String> = headers
            .get_all(header::CONTENT_ENCODING)
            .iter()
            .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
            .map(|name| String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase())
            .filter(|name| !name.is_empty() && name != "identity")
            .collect();
        match encodings.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            [] => Ok(None),
            ["gzip" | "x-gzip"] => Ok(Some(Self::Gzip(MultiGzDecoder::new(Vec::new())))),
            ["deflate"] => Ok(Some(Self::Unknown)),
            _ => Err(format!(
                "the response has the encoding `{}`, which was not asked for",
                crate::target::shown(&encodings.join(", "))
            )),
        }
    }

    /// Decodes a step of the input, and takes it off.
    pub(crate) fn step(&mut self, input: &mut Bytes) -> std::io::Result<Vec<u8>> {
        let step = input.split_to(input.remaining().min(STEP));
        if let (Self::Unknown, Some(first)) = (&self, step.first()) {
            // The low half of zlib's first byte names the method: 8, deflate (RFC 1950, section 2.2).
            let zlib = first & 0x0f == 8;
            *self = if zlib {
                Self::Zlib(ZlibDecoder::new(Vec::new()))
            } else {
                Self::Bare(DeflateDecoder::new(Vec::new()))
            };
        }
        let output = match self {
            Self::Gzip(decoder) => {
                decoder.write_all(&step)?;
                decoder.flush()?;
                decoder.get_mut()
            }
            Self::Zlib(decoder) => {
                decoder.write_all(&step)?;
                decoder.flush()?;
                decoder.get_mut()
            }
            Self::Bare(decoder) => {
                decoder.write_all(&step)?;
                decoder.flush()?;
                decoder.get_mut()
            }
            Self::Unknown => return Ok(Vec::new()),
        };
        Ok(std::mem::take(output))
    }

    /// The rest. Fails when the stream is not complete.
    pub(crate) fn finish(self) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Gzip(mut decoder) => {
                decoder.try_finish()?;
                decoder.finish()
            }
            Self::Zlib(decoder) => decoder.finish(),
            Self::Bare(decoder) => decoder.finish(),
            Self::Unknown => Ok(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    const TEXT: &str = "a secret may stand in here";

    fn headers(encoding: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_ENCODING, encoding.parse().unwrap())])
    }

    fn decode(encoding: &str, input: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut decoder = Decoder::of(&headers(encoding)).unwrap().unwrap();
        let mut input = Bytes::copy_from_slice(input);
        let mut output = Vec::new();
        while input.has_remaining() {
            output.extend(decoder.step(&mut input)?);
        }
        output.extend(decoder.finish()?);
        Ok(output)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn the_common_encodings_are_taken_off() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(TEXT.as_bytes()).unwrap();
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::default());
        bare.write_all(TEXT.as_bytes()).unwrap();
        for (encoding, input) in [
            ("gzip", gzip(TEXT.as_bytes())),
            ("X-GZIP", gzip(TEXT.as_bytes())),
            ("identity, gzip", gzip(TEXT.as_bytes())),
            ("gzip", [gzip(&TEXT.as_bytes()[..5]), gzip(&TEXT.as_bytes()[5..])].concat()),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", bare.finish().unwrap()),
        ] {
            assert_eq!(decode(encoding, &input).unwrap(), TEXT.as_bytes(), "{encoding}");
        }
        assert!(Decoder::of(&HeaderMap::new()).unwrap().is_none());
        assert!(Decoder::of(&headers("Identity")).unwrap().is_none());
    }

    #[test]
    fn other_encodings_and_broken_streams_are_errors() {
        for encoding in ["br", "zstd", "gzip, gzip", "gzip, br", "\u{fc}"] {
            assert!(Decoder::of(&headers(encoding)).is_err(), "{encoding}");
        }
        let whole = gzip(TEXT.as_bytes());
        assert!(decode("gzip", &whole[..whole.len() - 4]).is_err());
        assert!(decode("gzip", &whole[..whole.len() - 12]).is_err());
        assert!(decode("gzip", TEXT.as_bytes()).is_err());
        assert!(decode("gzip", &[&whole[..], b"not gzip, and longer than a header"].concat()).is_err());
    }

    #[test]
    fn a_bomb_comes_out_a_little_at_a_time() {
        let bomb = gzip(&vec![0; 64 << 20]);
        let mut decoder = Decoder::of(&headers("gzip")).unwrap().unwrap();
        let output = decoder.step(&mut Bytes::from(bomb)).unwrap();
        assert!(output.len() <= 1032 * STEP, "{}", output.len());
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_break_it(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300), gzip in proptest::bool::ANY) {
            // An error is an answer.
            let outcome = decode(if gzip { "gzip" } else { "deflate" }, &bytes);
            assert!(outcome.is_err() || outcome.unwrap().len() <= 1032 * 300);
        }
    }
}
