//! Where the frontmatter of a `SKILL.md` ends and its text begins.

use super::ManifestError;

/// Bytes of a frontmatter: two hundred times the usual size.
pub(super) const MAX_BYTES: usize = 64 << 10;

/// A `SKILL.md` in its two parts.
pub(super) struct ManifestParts<'a> {
    pub(super) front: &'a str,
    pub(super) body: &'a str,
}

/// Takes a text with `\n` at the ends of its lines apart. Byte order marks and empty lines may come before.
pub(super) fn split(text: &str) -> Result<ManifestParts<'_>, ManifestError> {
    let text = text.trim_start_matches(|c: char| c == '\u{feff}' || c.is_whitespace());
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| is_fence(line)).ok_or(ManifestError::NoFrontmatter)?;
    let mut end = first.len();
    let begin = end;
    for line in lines {
        // The line may be anywhere in a file of a megabyte.
        if end - begin > MAX_BYTES {
            break;
        }
        if is_fence(line) || line.trim_end() == "..." {
            let (front, rest) = (text.get(begin..end), text.get(end + line.len()..));
            return Ok(ManifestParts { front: front.unwrap_or_default(), body: rest.unwrap_or_default() });
        }
        end += line.len();
    }
    if end - begin > MAX_BYTES {
        return Err(ManifestError::TooLarge { limit: MAX_BYTES });
    }
    Err(ManifestError::Unterminated)
}

/// Three hyphens or more and nothing else.
fn is_fence(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 3 && line.bytes().all(|byte| byte == b'-')
}
