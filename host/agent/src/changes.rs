//! The changes of a run in the owner's directories, arranged for review (SPEC LAND-2).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use base::{ContentHash, Provenance, Refusal, RefusalCode, RunId};
use grants::DirectoryGrant;
use layer::{After, Before, Change, KeptOut, Layer};
use motor::{RunRecord, RunTrace};
use receipts::tree::sum;
use skills::review::{Comparison, FileSide};
use store::blocking;

use crate::Runs;
use crate::api::changes::{ChangedDirectory, ChangedFile, ChangingStep, PathChange, PathKind, RunChanges};
use crate::artifacts::WorkspaceBaseline;

/// The most entries of a directory that are looked at for secrets that the run does not see.
const MAX_LOOKED_AT: usize = 20_000;
/// The most secrets that are named.
const MAX_SECRETS: usize = 100;

impl Runs {
    /// The changes of a run in the owner's directories, without the values of credentials.
    ///
    /// # Errors
    /// If the run works on no directory, a directory is another one now, or something cannot be read.
    pub async fn changes(&self, id: &RunId) -> Result<RunChanges, Refusal> {
        let record = self.on_directories(id)?;
        let trace = self.trace(id)?;
        let home = self.environment.home.run(id);
        let scrubber = self.environment.access.scrubber(id).await?;
        let _turn = self.environment.landing.lock().await;
        blocking(move || {
            let layer = crate::landing::settled(&home)?;
            let changes = read(&layer, &home)?;
            let changes = assemble(&layer, &record, &trace, &changes)?;
            if scrubber.is_empty() {
                return Ok(changes);
            }
            // Clients without the owner's rights read it, too.
            let clean = serde_json::to_value(changes).map(|changes| scrubber.json(changes));
            clean.and_then(serde_json::from_value).map_err(|error| unreadable(&error))
        })
        .await
    }

    /// The record of a run that works on directories.
    pub(crate) fn on_directories(&self, id: &RunId) -> Result<RunRecord, Refusal> {
        let record = self.record(id)?;
        if record.grant.directories.is_empty() {
            let reason = format!("run `{id}` works on no directory of yours");
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason)
                .with_remedy("`motor act --on DIR \"…\"` works on one; the files of other runs are in `artifacts/`"));
        }
        Ok(record)
    }
}

/// The changes of a layer, without the files that the host put there.
pub(crate) fn read(layer: &Layer, run: &std::path::Path) -> Result<Vec<Change>, Refusal> {
    let given = WorkspaceBaseline::read(run);
    layer.changes(&|path| given.names(path)).map(|changes| changes.0).map_err(|error| unreadable(&error))
}

pub(crate) fn unreadable(error: &dyn std::error::Error) -> Refusal {
    Refusal::new(RefusalCode::Failed, format!("the changes of the run cannot be read: {error}"))
}

pub(crate) fn directories(granted: &[DirectoryGrant]) -> Vec<ChangedDirectory> {
    let shown = |grant: &DirectoryGrant| ChangedDirectory {
        path: grant.path.clone(),
        prefix: grant.prefix.clone(),
        read_only: grant.read_only,
    };
    granted.iter().map(shown).collect()
}

/// The first step after which a run had read from the web; `None`: it never did.
pub(crate) fn web_since(record: &RunRecord, trace: &RunTrace) -> Option<u32> {
    let web = |step: &&motor::StepTrace| {
        step.tool_calls
            .iter()
            .any(|call| call.result.as_ref().is_some_and(|result| result.provenance == Provenance::Web))
    };
    match trace.steps.iter().find(web) {
        Some(step) => Some(step.iteration),
        // Its inputs came from there, or a call was interrupted.
        None => (!record.web_sources.is_empty()).then_some(0),
    }
}

fn assemble(
    layer: &Arc<Layer>,
    record: &RunRecord,
    trace: &RunTrace,
    changes: &[Change],
) -> Result<RunChanges, Refusal> {
    let web = web_since(record, trace);
    let by_path: HashMap<&str, &Change> = changes.iter().map(|change| (change.at.as_str(), change)).collect();
    let renamed: BTreeSet<&str> =
        changes.iter().filter_map(|change| original(change, &by_path)).map(|from| from.at.as_str()).collect();
    let mut comparison = Comparison::default();
    let mut files = Vec::new();
    let mut touched: BTreeMap<u32, usize> = BTreeMap::new();
    for change in changes.iter().filter(|change| !renamed.contains(change.at.as_str())) {
        let file = shown(layer, change, original(change, &by_path), &mut comparison, web)?;
        file.steps.iter().for_each(|step| *touched.entry(*step).or_default() += 1);
        files.push(file);
    }
    let said: HashMap<u32, &str> = trace.steps.iter().map(|step| (step.iteration, step.text.as_str())).collect();
    let steps = touched.into_iter().map(|(step, paths)| ChangingStep {
        step,
        said: said.get(&step).map(|said| (*said).to_owned()).unwrap_or_default(),
        after_web: web.is_some_and(|since| step >= since),
        paths,
    });
    let (kept, _) = layer.kept_out(MAX_LOOKED_AT).map_err(|error| unreadable(&error))?;
    let secrets = kept.into_iter().filter(|(_, why)| *why == KeptOut::Secret).map(|(path, _)| path);
    Ok(RunChanges {
        run_id: record.id.clone(),
        status: record.status,
        directories: directories(&record.grant.directories),
        files,
        steps: steps.collect(),
        secrets_kept_out: secrets.take(MAX_SECRETS).collect(),
    })
}

/// The entry that became this new one by a rename, if there is one.
fn original<'a>(change: &Change, by_path: &HashMap<&str, &'a Change>) -> Option<&'a Change> {
    let from = by_path.get(change.from.as_deref()?)?;
    let is = matches!(
        (&from.before, &change.after),
        (Before::File { .. }, After::File { .. }) | (Before::Directory, After::Directory)
    );
    (is && from.after == After::Missing && change.before == Before::Missing).then_some(*from)
}

fn shown(
    layer: &Layer,
    change: &Change,
    from: Option<&Change>,
    comparison: &mut Comparison,
    web: Option<u32>,
) -> Result<ChangedFile, Refusal> {
    let failed = |error: &dyn std::error::Error| unreadable(error);
    let before = layer.before(from.unwrap_or(change)).map_err(|error| failed(&error))?;
    let after = match &change.after {
        After::File { content } => Some(File::open(content).map_err(|error| failed(&error))?),
        _ => None,
    };
    let is_file = before.is_some() || after.is_some();
    let (before, after) = (side(before).map_err(|error| failed(&error))?, side(after).map_err(|error| failed(&error))?);
    let texts = match (&before, &after) {
        (Some((_, None)), _) | (_, Some((_, None))) => None,
        (before, after) if is_file => comparison.text(&change.at, content(before.as_ref()), content(after.as_ref())),
        _ => None,
    };
    let mut steps: Vec<u32> = change.touches.iter().map(|touch| touch.step).collect();
    steps.dedup();
    Ok(ChangedFile {
        path: change.at.clone(),
        change: match (from, &change.before, &change.after) {
            (Some(_), ..) => PathChange::Renamed,
            (None, _, After::Missing) => PathChange::Deleted,
            (None, Before::Missing, _) => PathChange::Created,
            _ => PathChange::Changed,
        },
        kind: kind(change),
        from: from.map(|from| from.at.clone()),
        before: before.map(|(side, _)| side),
        after: after.map(|(side, _)| side),
        added: texts.as_ref().map(|texts| texts.added),
        removed: texts.as_ref().map(|texts| texts.removed),
        after_web: is_after(&steps, web),
        text: texts.map(|texts| texts.diff),
        steps,
    })
}

/// Whether the last of the steps came after the run had read from the web. Without a known step it counts as after.
pub(crate) fn is_after(steps: &[u32], web: Option<u32>) -> bool {
    web.is_some_and(|since| steps.last().is_none_or(|step| *step >= since))
}

fn kind(change: &Change) -> PathKind {
    match (&change.after, &change.before) {
        (After::File { .. }, _) | (After::Missing, Before::File { .. } | Before::Missing) => PathKind::File,
        (After::Directory, _) | (After::Missing, Before::Directory) => PathKind::Directory,
        (After::Missing, Before::Symlink) => PathKind::Link,
    }
}

fn content(side: Option<&(FileSide, Option<Vec<u8>>)>) -> Option<&[u8]> {
    side.and_then(|(_, content)| content.as_deref())
}

/// Size and hash of a file, and its content if it is short enough to be compared.
fn side(file: Option<File>) -> std::io::Result<Option<(FileSide, Option<Vec<u8>>)>> {
    let Some(mut file) = file else { return Ok(None) };
    let metadata = file.metadata()?;
    let mode = metadata.permissions().mode() & 0o777;
    if metadata.len() > Comparison::MAX_FILE_BYTES as u64 {
        let found = sum(&mut file, u64::MAX)?;
        return Ok(Some((FileSide { bytes: found.bytes, hash: found.hash, mode }, None)));
    }
    let mut content = Vec::new();
    file.take(Comparison::MAX_FILE_BYTES as u64).read_to_end(&mut content)?;
    Ok(Some((FileSide { bytes: content.len() as u64, hash: ContentHash::of(&content), mode }, Some(content))))
}
