//! Words of the memory that a guest wants to have another value than the one that they had when its snapshot was taken, since no code
//! of its own can write them.
//!
//! It leaves a list in its memory: [`MAGIC`], a value, a number, and so many addresses, each of the last three a word of 32 bits. The
//! list is made zero.

use std::ops::Range;

use anyhow::{Context as _, Result, ensure};
use wasmparser::{DataKind, Operator, Parser, Payload};

/// The beginning of each list.
const MAGIC: &[u8] = b"MotorCortexWords";
const WORD: usize = size_of::<u32>();

/// Sets the words that the lists in the memory of a module name. One that lies outside of its segments is zero, and stays so.
pub fn set(module: &mut [u8]) -> Result<()> {
    let image = Image::of(module)?;
    for mut address in image.find(module, MAGIC) {
        let mut next = |module: &mut [u8], value| {
            let word = image.replace(module, address, value)?;
            address = address.checked_add(4).context("a list of words is cut off")?;
            anyhow::Ok(word)
        };
        for _ in MAGIC.chunks(WORD) {
            next(module, 0)?;
        }
        let (value, count) = (next(module, 0)?, next(module, 0)?);
        ensure!(count <= image.words(), "a list of words is cut off");
        for _ in 0..count {
            let listed = next(module, 0)?;
            image.replace(module, listed, value)?;
        }
    }
    Ok(())
}

/// The segments of the memory with a constant address, in their order: each with its address and its place in the module.
struct Image {
    segments: Vec<(u32, Range<usize>)>,
}

impl Image {
    fn of(module: &[u8]) -> Result<Self> {
        let mut segments = Vec::new();
        for payload in Parser::new(0).parse_all(module) {
            let Payload::DataSection(section) = payload? else { continue };
            for segment in section {
                let segment = segment?;
                if let DataKind::Active { memory_index: 0, offset_expr } = segment.kind
                    && let Operator::I32Const { value } = offset_expr.get_operators_reader().read()?
                {
                    let end = segment.range.end;
                    segments.push((value.cast_unsigned(), end - segment.data.len()..end));
                }
            }
        }
        segments.sort_unstable_by_key(|(address, _)| *address);
        Ok(Self { segments })
    }

    fn words(&self) -> u32 {
        self.segments
            .iter()
            .map(|(_, bytes)| u32::try_from(bytes.len() / WORD).unwrap_or(u32::MAX))
            .fold(0, u32::saturating_add)
    }

    /// The addresses at which these bytes lie.
    fn find(&self, module: &[u8], bytes: &[u8]) -> Vec<u32> {
        let mut found = Vec::new();
        for (address, place) in &self.segments {
            let segment = module.get(place.clone()).unwrap_or_default();
            found.extend(
                memchr::memmem::find_iter(segment, bytes).map(|offset| address + u32::try_from(offset).unwrap_or(0)),
            );
        }
        found
    }

    /// Sets a word, and returns its value before. Zeros are left out of segments.
    fn replace(&self, module: &mut [u8], address: u32, value: u32) -> Result<u32> {
        let mut old = [0; WORD];
        for (at, (old, new)) in (address..=u32::MAX).zip(old.iter_mut().zip(value.to_le_bytes())) {
            let after = self.segments.partition_point(|(start, _)| *start <= at);
            let Some((start, bytes)) = after.checked_sub(1).and_then(|last| self.segments.get(last)) else { continue };
            let place = bytes.start + (at - start) as usize;
            if place < bytes.end {
                let byte = module.get_mut(place).context("a segment is outside of its module")?;
                *old = std::mem::replace(byte, new);
            }
        }
        Ok(u32::from_le_bytes(old))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory after `set`, of a module with these segments.
    fn after(segments: &[(u32, &[u8])]) -> Result<Vec<Vec<u8>>> {
        let escaped = |bytes: &[u8]| bytes.iter().map(|byte| format!("\\{byte:02x}")).collect::<String>();
        let data: String =
            segments.iter().map(|(at, bytes)| format!("(data (i32.const {at}) \"{}\")", escaped(bytes))).collect();
        let mut module = wat::parse_str(format!("(module (memory 1) {data})"))?;
        set(&mut module)?;
        let image = Image::of(&module)?;
        Ok(image.segments.into_iter().map(|(_, place)| module[place].to_vec()).collect())
    }

    fn list(words: &[u32]) -> Vec<u8> {
        MAGIC.iter().copied().chain(words.iter().flat_map(|word| word.to_le_bytes())).collect()
    }

    #[test]
    fn listed_words_get_their_value_and_the_list_goes() {
        let list = list(&[7, 3, 4, 100, 5_000]);
        let memory = after(&[(96, &[1; 8]), (0, &[2; 12]), (200, &list)]).unwrap();
        assert_eq!(memory[0], [2, 2, 2, 2, 7, 0, 0, 0, 2, 2, 2, 2]);
        assert_eq!(memory[1], [1, 1, 1, 1, 7, 0, 0, 0]);
        assert_eq!(memory[2], vec![0; list.len()]);
    }

    #[test]
    fn zeros_that_the_segments_leave_out_are_zero() {
        let list = list(&[7, 2, 0, 4]);
        let (begin, end) = list.split_at(24);
        let memory = after(&[(0, &[1; 4]), (6, &[1; 4]), (200, begin), (228, &end[4..])]).unwrap();
        assert_eq!(memory[0], [7, 0, 0, 0]);
        // The word at 4 is half outside.
        assert_eq!(memory[1], [0, 0, 1, 1]);
        assert!(memory[2..].iter().flatten().all(|byte| *byte == 0));
    }

    #[test]
    fn refuses_a_list_that_is_cut_off() {
        for words in [vec![7, 1_000], vec![7, u32::MAX, 0]] {
            let error = after(&[(0, &[1; 4]), (200, &list(&words))]).unwrap_err();
            assert!(error.to_string().contains("cut off"), "{error:#}");
        }
    }
}
