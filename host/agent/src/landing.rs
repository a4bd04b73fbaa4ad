//! Landing the changes of a run, and taking them back: planned for a question, done with the owner's consent (SPEC LAND-3,
//! LAND-4). [`commit`] makes a commit of them.
//!
//! A landing that a crash interrupted is ended before anything else reads the run's changes ([`settled`]). Afterwards the
//! run's layer is told the present state of the directory, so that its changes are measured against it.

mod commit;
mod failure;
mod shown;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{ConsentRecord, ContentHash, Refusal, RefusalCode, RunId, Timestamp};
use consent::Consent;
use landing::{Edit, LandError, Landing, Plan, Planning, Side, State, Target, Verdict};
use layer::{After, Before, Change, Layer};
use motor::{RunRecord, RunTrace};
use serde::{Deserialize, Serialize};
use store::blocking;

use self::commit::{CommitStep, Wanted};
use self::failure::{failed, refused};
use self::shown::shown;
use crate::Runs;
use crate::api::changes::{LandReply, LandRequest, LandingPlan, LandingSummary};
use crate::changes::{is_after, read, unreadable, web_since};

/// The directory of a run's landings, below that of the run.
const LANDINGS: &str = "landings";
/// The merged texts of the newest plan.
const MERGED: &str = "merged";
/// The host's facts about a landing, in its directory.
const WORD: &str = "consent.json";
/// The file beside the runs that names the landing under way.
const UNDER_WAY: &str = ".landing";
/// That the run's layer knows of the landing.
const TOLD: &str = "told";

/// Whose word a landing was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Word {
    undoes: Option<u32>,
    consent: ConsentRecord,
}

impl Runs {
    /// The effects of a landing. Nothing is changed.
    ///
    /// # Errors
    /// If the run works on no directory, or a path selects nothing.
    pub async fn plan_landing(&self, id: &RunId, request: LandRequest) -> Result<LandingPlan, Refusal> {
        let _turn = self.environment.landing.lock().await;
        let run = self.landable(id)?;
        let wanted = self.wanted(id, &run.trace.task, &request).await?;
        blocking(move || {
            let layer = settled(&run.home)?;
            let prepared = prepare(&layer, &run, &request, wanted.as_ref())?;
            Ok(shown(&run, &request, &prepared))
        })
        .await
    }

    /// Lands the changes of a run, or takes a landing back. All or nothing.
    ///
    /// # Errors
    /// If there are conflicts, the plan is another one than the owner saw, or the system refuses: nothing is changed
    /// then.
    pub async fn land(&self, id: &RunId, request: LandRequest, consent: Consent) -> Result<LandReply, Refusal> {
        let _turn = self.environment.landing.lock().await;
        let run = self.landable(id)?;
        let wanted = self.wanted(id, &run.trace.task, &request).await?;
        let now = self.environment.clock.now();
        blocking(move || {
            let layer = settled(&run.home)?;
            let prepared = prepare(&layer, &run, &request, wanted.as_ref())?;
            if request.hash.is_some_and(|seen| seen != prepared.hash) {
                let reason = "the plan is another one now than the one that was looked at";
                return Err(Refusal::new(RefusalCode::IllegalState, reason).with_remedy("look at it again, and decide"));
            }
            apply(&run, &request, prepared, consent.into(), now)
        })
        .await
    }

    /// The landings of a run, the oldest first.
    ///
    /// # Errors
    /// If the run works on no directory, or one cannot be read.
    pub async fn landings(&self, id: &RunId) -> Result<Vec<LandingSummary>, Refusal> {
        self.on_directories(id)?;
        let home = self.environment.home.run(id);
        let _turn = self.environment.landing.lock().await;
        blocking(move || summaries(&home)).await
    }

    /// Asked while no landing is under way: a driver that starts later waits for its end before it opens the layer.
    fn landable(&self, id: &RunId) -> Result<StillRun, Refusal> {
        let record = self.on_directories(id)?;
        if self.motor.is_driven(id) {
            let reason = format!("run `{id}` is at work, and may change more");
            return Err(Refusal::new(RefusalCode::IllegalState, reason)
                .with_remedy(format!("wait for its end, or stop it: `motor task cancel {id}`")));
        }
        Ok(StillRun { trace: self.trace(id)?, home: self.environment.home.run(id), record })
    }
}

/// A run whose changes stand still.
struct StillRun {
    record: RunRecord,
    trace: RunTrace,
    home: PathBuf,
}

/// A plan with the facts that its question needs.
struct Prepared {
    plan: Plan,
    hash: ContentHash,
    changes: Vec<Change>,
    commit: Option<CommitStep>,
}

/// Ends an interrupted landing, tells the layer of every landing, and opens it.
///
/// # Errors
/// If a directory is another one now, or something cannot be read.
pub(crate) fn settled(run: &Path) -> Result<Arc<Layer>, Refusal> {
    let layer = Layer::open(run).map_err(|error| refused(&error))?;
    for number in numbers(run)? {
        let directory = run.join(LANDINGS).join(number.to_string());
        landing::recover(&directory).map_err(|error| failed(&error))?;
        tell(&layer, &directory)?;
    }
    Ok(Arc::new(layer))
}

/// Ends the landing that an earlier host, or a failure of this one, left in the middle; there is at most one.
///
/// # Errors
/// If its directory is another one now, or the system refuses: it is tried again with the next host.
pub(crate) fn end_interrupted(runs: &Path) -> Result<(), Refusal> {
    let named = runs.join(UNDER_WAY);
    let Ok(place) = store::read_regular(&named, store::Links::Refused, 1 << 10) else {
        // Only a missing file says that no landing is under way: not one that cannot be read, nor a link that leads nowhere.
        let is_missing = fs::symlink_metadata(&named).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        return if is_missing { Ok(()) } else { Err(unreadable(&io::Error::other("`.landing` cannot be read"))) };
    };
    let place = String::from_utf8(place).map_err(|error| unreadable(&error))?;
    landing::recover(&runs.join(place)).map_err(|error| failed(&error))?;
    fs::remove_file(named).map_err(|error| unreadable(&error))
}

/// Measures the run's changes from now on against the state that a landing left in the directory.
fn tell(layer: &Layer, directory: &Path) -> Result<(), Refusal> {
    let told = directory.join(TOLD);
    if told.exists() {
        return Ok(());
    }
    let Some((targets, edits)) = landing::done(directory).map_err(|error| failed(&error))? else { return Ok(()) };
    for edit in edits {
        let at = at(&targets, &edit);
        let content = match &edit.after {
            Side::File { content } => content.as_deref(),
            _ => None,
        };
        layer.rebase(&at, content).map_err(|error| refused(&error))?;
    }
    fs::write(told, "").map_err(|error| unreadable(&error))
}

/// The path of an edit as the run sees it.
fn at(targets: &[Target], edit: &Edit) -> String {
    match targets.get(edit.target).map(|target| target.prefix.as_str()) {
        None | Some("") => edit.path.clone(),
        Some(prefix) => format!("{prefix}/{}", edit.path),
    }
}

fn numbers(run: &Path) -> Result<Vec<u32>, Refusal> {
    let listed = match fs::read_dir(run.join(LANDINGS)) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(&error)),
    };
    let mut numbers = Vec::new();
    for entry in listed {
        let entry = entry.map_err(|error| unreadable(&error))?;
        numbers.extend(entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn prepare(layer: &Layer, run: &StillRun, request: &LandRequest, wanted: Option<&Wanted>) -> Result<Prepared, Refusal> {
    let StillRun { record, trace, home: run } = run;
    let changes = read(layer, run)?;
    let (targets, edits) = match request.undoes {
        Some(number) => landing::undo(&landing_of(run, number)?).map_err(|error| failed(&error))?,
        None => (targets(layer), changes.iter().filter(|change| writable(layer, change)).map(edit).collect()),
    };
    let edits = landing::select(edits, &request.paths, |edit| at(&targets, edit)).map_err(|error| failed(&error))?;
    let merged = run.join(LANDINGS).join(MERGED);
    match fs::remove_dir_all(&merged) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unreadable(&error)),
        _ => {}
    }
    let planning = Planning { targets: &targets, began: layer.began(), merged: &merged };
    let plan = landing::plan(planning, edits).map_err(|error| failed(&error))?;
    let tainted = || {
        let web = web_since(record, trace);
        plan.done().any(|(_, entry)| is_after(&steps(&changes, &entry.at(&plan)), web))
    };
    let commit = match (wanted, request.undoes) {
        // An empty plan is refused as such, before git is asked.
        (Some(_), _) if plan.done().next().is_none() => None,
        (Some(wanted), _) => Some(wanted.draft(&plan, tainted())?),
        (None, Some(number)) => commit::back(&landing_of(run, number)?, request.paths.is_empty())?,
        (None, None) => None,
    };
    let planned = commit.as_ref().map(CommitStep::planned);
    let text = serde_json::to_vec(&(&plan, planned)).map_err(|error| unreadable(&error))?;
    Ok(Prepared { hash: ContentHash::of(&text), plan, changes, commit })
}

/// The steps of the run that touched a path.
fn steps(changes: &[Change], path: &str) -> Vec<u32> {
    let change = changes.binary_search_by(|change| change.at.as_str().cmp(path)).ok();
    let change = change.and_then(|index| changes.get(index));
    change.into_iter().flat_map(|change| &change.touches).map(|touch| touch.step).collect()
}

fn landing_of(run: &Path, number: u32) -> Result<PathBuf, Refusal> {
    if !numbers(run)?.contains(&number) {
        return Err(Refusal::new(RefusalCode::NotFound, format!("the run has no landing {number}")));
    }
    Ok(run.join(LANDINGS).join(number.to_string()))
}

fn targets(layer: &Layer) -> Vec<Target> {
    let target = |source: &layer::Source| Target {
        directory: source.directory.clone(),
        device: source.device,
        inode: source.inode,
        prefix: source.prefix.clone(),
    };
    layer.sources().iter().map(target).collect()
}

fn writable(layer: &Layer, change: &Change) -> bool {
    layer.sources().get(change.source).is_some_and(|source| source.writable)
}

fn edit(change: &Change) -> Edit {
    Edit {
        target: change.source,
        path: change.path.clone(),
        before: match &change.before {
            Before::Missing => Side::Missing,
            Before::File { base } => Side::File { content: base.clone() },
            Before::Directory => Side::Directory,
            Before::Symlink => Side::Symlink { target: None },
        },
        after: match &change.after {
            After::Missing => Side::Missing,
            After::File { content } => Side::File { content: Some(content.clone()) },
            After::Directory => Side::Directory,
        },
    }
}

fn apply(
    StillRun { record: RunRecord { id: run, .. }, home, .. }: &StillRun,
    request: &LandRequest,
    prepared: Prepared,
    consent: ConsentRecord,
    now: Timestamp,
) -> Result<LandReply, Refusal> {
    let Prepared { mut plan, commit, .. } = prepared;
    let skipped: Vec<_> = plan.conflicts().map(|entry| entry.at(&plan)).collect();
    let conflicts = skipped.len();
    if request.skip_conflicts {
        plan.entries.retain(|entry| !matches!(entry.verdict, Verdict::Conflict { .. }));
    } else if let Some(first) = skipped.first() {
        return Err(failed(&LandError::Conflicts(conflicts)).with_remedy(format!(
            "the first is `{first}`: `motor land {run} PATH…` lands others, `--skip-conflicts` all others"
        )));
    }
    let done = plan.done().count();
    if done == 0 && !commit.as_ref().is_some_and(CommitStep::changes) {
        let what = if request.undoes.is_some() { "take back" } else { "land" };
        return Err(Refusal::new(RefusalCode::IllegalState, format!("there is nothing to {what}")));
    }
    let spares_files = commit.as_ref().is_some_and(CommitStep::spares_files);
    let seconds = i64::try_from(now.as_millis() / 1000).unwrap_or(i64::MAX);
    let (intent, stays) = commit.map(|commit| commit.begin(seconds)).transpose()?.unwrap_or_default();
    if spares_files {
        plan.entries.clear();
    }
    let number = numbers(home)?.last().map_or(1, |last| last + 1);
    let directory = home.join(LANDINGS).join(number.to_string());
    fs::create_dir_all(&directory).map_err(|error| unreadable(&error))?;
    let word = Word { undoes: request.undoes, consent };
    let text = serde_json::to_vec(&word).map_err(|error| unreadable(&error))?;
    store::create_file(&directory, WORD, &text)?;
    let undoes = request.undoes.map(|undone| home.join(LANDINGS).join(undone.to_string()));
    let name = format!(".motor-landing-{run}-{number}");
    let runs = home.parent().unwrap_or(home);
    let under_way = format!("{run}/{LANDINGS}/{number}");
    store::replace_file(runs, UNDER_WAY, under_way.as_bytes())?;
    let landing = Landing { directory: &directory, name: &name, undoes: undoes.as_deref(), commit: intent.clone() };
    let landed = landing::land(plan, landing).map_err(|error| failed(&error));
    end_interrupted(runs)?;
    let landed = landed?;
    // The layer is told now, and again by the next host if this one ends here.
    settled(home)?;
    let paths = intent.as_ref().filter(|_| spares_files).map_or(landed.paths, repository::Intent::paths);
    let reached = intent.zip(landed.commit).map(|(intent, progress)| commit::reached(&intent, &progress));
    Ok(LandReply { landing: number, paths, kept: landed.kept, skipped, commit: reached.or(stays) })
}

pub(crate) fn summaries(run: &Path) -> Result<Vec<LandingSummary>, Refusal> {
    let mut found = Vec::new();
    for number in numbers(run)? {
        let directory = run.join(LANDINGS).join(number.to_string());
        let state = landing::recover(&directory).map_err(|error| failed(&error))?;
        let word = store::read_regular(&directory.join(WORD), store::Links::Refused, 1 << 20);
        let word = word.ok().and_then(|text| serde_json::from_slice::<Word>(&text).ok());
        // A landing of which nothing but its number was written never began.
        let (Some(state), Some(Word { undoes, consent })) = (state, word) else { continue };
        let paths = match state {
            State::Landed | State::Undone => landing::done(&directory).map_err(|error| failed(&error))?,
            _ => None,
        };
        let mut paths = paths.map_or(0, |(_, edits)| edits.len());
        let commit = commit::of(&directory)?.map(|(commit, in_it)| {
            paths = if commit.is_new_branch { in_it } else { paths };
            commit
        });
        found.push(LandingSummary { landing: number, state: state.name().to_owned(), paths, undoes, commit, consent });
    }
    Ok(found)
}
