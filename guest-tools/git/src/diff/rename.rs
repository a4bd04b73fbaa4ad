//! Renames: files that were deleted, found again among those that were added. The rules are git's (`diffcore-rename`): equal
//! contents first, then files that kept their name, then the most similar ones of at least 50 %.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use bstr::{BStr, BString, ByteSlice as _};

use super::content::{Content, is_binary};
use super::{Change, Side};
use crate::error::Result;
use crate::index::mode;
use crate::limits::{MAX_RENAME_PAIRS, MAX_TEXT_BYTES};
use crate::repository::Repository;

/// The score of equal contents.
const MAX_SCORE: u64 = 60_000;

/// Bytes of a piece that contents are compared by, unless a line ends before.
const PIECE_BYTES: usize = 64;

/// Candidates that are kept for one added file.
const CANDIDATES: usize = 4;

/// Joins deletions and additions to renames. `least` is the similarity needed, in percent.
pub(crate) fn detect(repository: &Repository, changes: Vec<Change>, least: u32) -> Result<Vec<Change>> {
    let least = u64::from(least).saturating_mul(MAX_SCORE) / 100;
    let mut sources: Vec<Side> = Vec::new();
    let mut targets: Vec<Side> = Vec::new();
    let mut others = Vec::new();
    for change in changes {
        match (&change.old, &change.new) {
            (Some(old), None) if change.conflict.is_none() => sources.push(old.clone()),
            (None, Some(new)) if new.mode != mode::SUBMODULE => targets.push(new.clone()),
            _ => others.push(change),
        }
    }
    let mut search =
        Search { repository, sources, targets, pairs: HashMap::new(), used: HashSet::new(), pieces: HashMap::new() };
    if !search.sources.is_empty() && !search.targets.is_empty() {
        search.exact();
        search.same_name(least)?;
        search.similar(least)?;
    }
    let Search { sources, targets, pairs, used, .. } = search;
    for (place, target) in targets.into_iter().enumerate() {
        let mut change = Change::new(None, Some(target));
        if let Some((source, score)) = pairs.get(&place) {
            change.old = sources.get(*source).cloned();
            change.similarity = Some(u32::try_from(score.saturating_mul(100) / MAX_SCORE).unwrap_or(100));
        }
        others.push(change);
    }
    let left = sources.into_iter().enumerate().filter(|(place, _)| !used.contains(place));
    others.extend(left.map(|(_, source)| Change::new(Some(source), None)));
    others.sort_by(|one, other| one.path().cmp(other.path()));
    Ok(others)
}

struct Search<'a> {
    repository: &'a Repository,
    sources: Vec<Side>,
    targets: Vec<Side>,
    /// For each target found: the source and the score.
    pairs: HashMap<usize, (usize, u64)>,
    used: HashSet<usize>,
    pieces: HashMap<(bool, usize), Option<Pieces>>,
}

/// How many bytes of each piece a content has.
#[derive(Clone)]
struct Pieces {
    counts: HashMap<Vec<u8>, u64>,
    size: u64,
}

impl Search<'_> {
    fn join(&mut self, target: usize, source: usize, score: u64) {
        self.pairs.insert(target, (source, score));
        self.used.insert(source);
    }

    fn exact(&mut self) {
        let mut by_id: HashMap<_, Vec<usize>> = HashMap::new();
        for (place, source) in self.sources.iter().enumerate() {
            by_id.entry(source.id).or_default().push(place);
        }
        for target in 0..self.targets.len() {
            let Some(side) = self.targets.get(target) else { break };
            let mut best: Option<(usize, u8)> = None;
            for place in by_id.get(&side.id).into_iter().flatten() {
                let Some(source) = self.sources.get(*place).filter(|_| !self.used.contains(place)) else { continue };
                let comparable = (mode::is_file(source.mode) && mode::is_file(side.mode)) || source.mode == side.mode;
                let score = 1 + u8::from(base(source.path.as_bstr()) == base(side.path.as_bstr()));
                if comparable && best.is_none_or(|(_, most)| score > most) {
                    best = Some((*place, score));
                }
            }
            if let Some((source, _)) = best {
                self.join(target, source, MAX_SCORE);
            }
        }
    }

    /// A name that is once among the deleted and once among the added files needs a lower similarity to be tried alone.
    fn same_name(&mut self, least: u64) -> Result<()> {
        let needed = least.saturating_add(MAX_SCORE.saturating_sub(least) / 2);
        let sources = unique(&self.sources, |place| self.used.contains(&place));
        let targets = unique(&self.targets, |place| self.pairs.contains_key(&place));
        let mut found: Vec<(usize, usize)> = Vec::new();
        for (name, source) in &sources {
            if let (Some(source), Some(Some(target))) = (source, targets.get(name)) {
                found.push((*source, *target));
            }
        }
        found.sort_unstable();
        for (source, target) in found {
            let score = self.score(source, target, least)?;
            if score >= needed {
                self.join(target, source, score);
            }
        }
        Ok(())
    }

    fn similar(&mut self, least: u64) -> Result<()> {
        let sources: Vec<usize> = (0..self.sources.len()).filter(|place| !self.used.contains(place)).collect();
        let targets: Vec<usize> = (0..self.targets.len()).filter(|place| !self.pairs.contains_key(place)).collect();
        if sources.len().saturating_mul(targets.len()) > MAX_RENAME_PAIRS {
            return Ok(());
        }
        // Score, whether the name is the same, and the pair.
        let mut candidates: Vec<(u64, bool, usize, usize)> = Vec::new();
        for target in targets {
            let mut best: Vec<(u64, bool, usize, usize)> = Vec::new();
            for source in &sources {
                let score = self.score(*source, target, least)?;
                if score < least {
                    continue;
                }
                let name =
                    |sides: &[Side], place: usize| sides.get(place).map(|side| base(side.path.as_bstr()).to_owned());
                let same = name(&self.sources, *source) == name(&self.targets, target);
                best.push((score, same, *source, target));
            }
            best.sort_by_key(|(score, same, _, _)| Reverse((*score, *same)));
            candidates.extend(best.into_iter().take(CANDIDATES));
        }
        candidates.sort_by_key(|(score, same, _, _)| Reverse((*score, *same)));
        for (score, _, source, target) in candidates {
            if !self.used.contains(&source) && !self.pairs.contains_key(&target) {
                self.join(target, source, score);
            }
        }
        Ok(())
    }

    /// How much of the larger content was copied from the source.
    fn score(&mut self, source: usize, target: usize, least: u64) -> Result<u64> {
        let regular = |sides: &[Side], place: usize| sides.get(place).is_some_and(|side| mode::is_file(side.mode));
        if !regular(&self.sources, source) || !regular(&self.targets, target) {
            return Ok(0);
        }
        self.load(true, source)?;
        self.load(false, target)?;
        let pieces = |side: bool, place: usize| self.pieces.get(&(side, place)).and_then(Option::as_ref);
        let (Some(old), Some(new)) = (pieces(true, source), pieces(false, target)) else { return Ok(0) };
        let (largest, smallest) = (old.size.max(new.size), old.size.min(new.size));
        let apart = largest.saturating_sub(smallest).saturating_mul(MAX_SCORE);
        if new.size == 0 || largest.saturating_mul(MAX_SCORE.saturating_sub(least)) < apart {
            return Ok(0);
        }
        let copied: u64 =
            old.counts.iter().map(|(piece, count)| new.counts.get(piece).map_or(0, |other| *count.min(other))).sum();
        Ok(copied.saturating_mul(MAX_SCORE).checked_div(largest).unwrap_or(0))
    }

    fn load(&mut self, is_source: bool, place: usize) -> Result<()> {
        if self.pieces.contains_key(&(is_source, place)) {
            return Ok(());
        }
        let side = if is_source { self.sources.get(place) } else { self.targets.get(place) };
        let content = Content::load(self.repository, side)?;
        let pieces = content.all().filter(|_| content.size <= MAX_TEXT_BYTES).map(pieces_of);
        self.pieces.insert((is_source, place), pieces);
        Ok(())
    }
}

/// The names that are there once, with their places; `None` for those that are there more than once.
fn unique(sides: &[Side], taken: impl Fn(usize) -> bool) -> HashMap<BString, Option<usize>> {
    let mut names: HashMap<BString, Option<usize>> = HashMap::new();
    for (place, side) in sides.iter().enumerate().filter(|(place, _)| !taken(*place)) {
        names.entry(base(side.path.as_bstr()).to_owned()).and_modify(|known| *known = None).or_insert(Some(place));
    }
    names
}

fn base(path: &BStr) -> &BStr {
    path.rsplit_once_str("/").map_or(path, |(_, name)| name.as_bstr())
}

fn pieces_of(bytes: &[u8]) -> Pieces {
    let text = !is_binary(bytes);
    let mut counts: HashMap<Vec<u8>, u64> = HashMap::new();
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    let mut rest = bytes;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        // The two kinds of line ends count as the same.
        if text && *byte == b'\r' && rest.first() == Some(&b'\n') {
            continue;
        }
        piece.push(*byte);
        if piece.len() >= PIECE_BYTES || *byte == b'\n' || rest.is_empty() {
            let count = u64::try_from(piece.len()).unwrap_or(0);
            *counts.entry(std::mem::take(&mut piece)).or_default() += count;
        }
    }
    Pieces { counts, size: u64::try_from(bytes.len()).unwrap_or(u64::MAX) }
}
