//! The name that was probably meant. Bounded, as both sides may come from a model.

/// Longer names are not compared: the table grows with the product of the lengths.
const LONGEST_CHARS: usize = 64;

/// The candidate nearest to a word by edit distance, when it is near enough to be worth suggesting: letter case aside,
/// at most a third of the longer one differs, or half when they begin alike. Of equals, the first.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = folded(word)?;
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let other = folded(candidate)?;
            let distance = distance(&word, &other);
            let parts = if word.first() == other.first() { 2 } else { 3 };
            (distance * parts <= word.len().max(other.len())).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn folded(word: &str) -> Option<Vec<char>> {
    let chars: Vec<char> = word.chars().flat_map(char::to_lowercase).take(LONGEST_CHARS + 1).collect();
    (chars.len() <= LONGEST_CHARS).then_some(chars)
}

/// Levenshtein's distance, row by row.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (index, from) in a.iter().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        let mut left = index + 1;
        next.push(left);
        for (pair, to) in row.windows(2).zip(b) {
            if let [diagonal, above] = *pair {
                left = (diagonal + usize::from(from != to)).min(above + 1).min(left + 1);
                next.push(left);
            }
        }
        row = next;
    }
    row.last().copied().unwrap_or(a.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, expected: Option<&str>) {
        assert_eq!(nearest(word, ["path", "offset", "limit", "case_insensitive"]), expected, "{word}");
    }

    #[test]
    fn suggests_what_was_probably_meant() {
        check("Path", Some("path"));
        check("pth", Some("path"));
        check("paht", Some("path"));
        check("offest", Some("offset"));
        check("caseInsensitive", Some("case_insensitive"));
    }

    #[test]
    fn suggests_nothing_when_nothing_is_near() {
        check("", None);
        check("filename", None);
        check(&"x".repeat(1_000_000), None);
    }
}
