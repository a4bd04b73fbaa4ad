//! `motor diff`: the changes of a run in the owner's directories (SPEC LAND-2).

use std::fmt::Write as _;

use agent::{ChangedFile, PathChange, PathKind, RunChanges};
use base::{Refusal, RefusalCode, RunId};
use clap::Args;
use skills::review::FileSide;

use super::Done;
use super::context::Context;
use super::task::or_newest;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::diff::unified;
use crate::output::{Palette, text};
use crate::session::Session;
use crate::words::landing::{heading, summary};

/// Arguments of `motor diff`.
#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// The run [default: the newest], and paths in its workspace [default: all]
    #[arg(value_name = "RUN [PATH")]
    targets: Vec<String>,
    /// Show only the numbers of lines
    #[arg(long)]
    stat: bool,
}

pub(super) async fn run(arguments: DiffArgs, context: &Context) -> Done {
    context
        .with_host(async |session| {
            let (run, paths) = targets(&arguments.targets);
            let run = or_newest(run, session, context).await?;
            let mut changes = of(&run, session).await?;
            narrow(&mut changes, &paths)?;
            context.answer(&changes, || {
                let (columns, palette) = (context.output.columns, context.output.out);
                if arguments.stat { stat(&changes, columns, palette) } else { whole(&changes, columns, palette) }
            })?;
            Ok(CommandExit::Ok)
        })
        .await
}

/// Asks for the changes of a run.
///
/// # Errors
/// If it works on no directory.
pub(super) async fn of(run: &RunId, session: &mut Session) -> Result<RunChanges, Refusal> {
    session.ask(&Call::get(format!("/v1/tasks/{run}/changes"))).await
}

/// A run, if the first word is the id of one, and paths.
pub(super) fn targets(words: &[String]) -> (Option<RunId>, Vec<String>) {
    match words {
        [first, rest @ ..] if first.starts_with("run_") => match RunId::parse(first) {
            Ok(run) => (Some(run), rest.to_vec()),
            Err(_) => (None, words.to_vec()),
        },
        words => (None, words.to_vec()),
    }
}

fn narrow(changes: &mut RunChanges, paths: &[String]) -> Result<(), Refusal> {
    let clean = |path: &str| path.trim_start_matches("./").trim_end_matches('/').to_owned();
    let paths: Vec<_> = paths.iter().map(|path| clean(path)).collect();
    let within = |file: &ChangedFile, path: &str| {
        file.path.strip_prefix(path).is_some_and(|rest| path.is_empty() || rest.is_empty() || rest.starts_with('/'))
    };
    if let Some(path) = paths.iter().find(|path| !changes.files.iter().any(|file| within(file, path))) {
        return Err(Refusal::new(RefusalCode::NotFound, format!("the run changed nothing at {}", text::quoted(path))));
    }
    if !paths.is_empty() {
        changes.files.retain(|file| paths.iter().any(|path| within(file, path)));
    }
    Ok(())
}

/// A row for each file, and the sum.
fn stat(changes: &RunChanges, columns: usize, palette: Palette) -> String {
    let mut page = String::new();
    for file in &changes.files {
        let (tone, heading) = heading(file);
        let lines = match (file.added, file.removed) {
            (Some(added), Some(removed)) => format!("+{added} −{removed}"),
            _ => sides(file),
        };
        let room = columns.saturating_sub(text::width(&lines) + 2);
        writeln!(page, "{}  {}", tone.paint(palette, &text::cut(&heading, room)), palette.dim(&lines)).ok();
    }
    page + &foot(changes, columns, palette)
}

/// The steps, then each file with its lines.
fn whole(changes: &RunChanges, columns: usize, palette: Palette) -> String {
    let mut page = String::new();
    for step in &changes.steps {
        let mark = if step.after_web { " †" } else { "" };
        let said = text::one_line(&step.said);
        let said = if said.is_empty() { "(the model said nothing)".to_owned() } else { said };
        let paths = text::plural(step.paths as u64, "path");
        let line = format!("step {}{mark}, {paths}: {said}", step.step);
        writeln!(page, "{}", palette.dim(&text::cut(&line, columns))).ok();
    }
    for file in &changes.files {
        let (tone, heading) = heading(file);
        let steps = file.steps.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let steps = if steps.is_empty() { String::new() } else { format!("  step {steps}") };
        let separator = if page.is_empty() || file.kind == PathKind::Directory { "" } else { "\n" };
        writeln!(page, "{separator}{}{}", palette.bold(&tone.paint(palette, &heading)), palette.dim(&steps)).ok();
        match &file.text {
            Some(text) if !text.is_empty() => page.push_str(&unified(text, palette)),
            _ if file.kind == PathKind::File && !sides(file).is_empty() => {
                writeln!(page, "{}", palette.dim(&sides(file))).unwrap_or_default();
            }
            _ => {}
        }
    }
    page + "\n" + &foot(changes, columns, palette)
}

/// The two sides of a file that has no lines.
fn sides(file: &ChangedFile) -> String {
    let side = |side: &FileSide| format!("{}, {}", text::bytes(side.bytes), side.hash.short());
    match (&file.before, &file.after) {
        (Some(before), Some(after)) if before.hash == after.hash => side(after),
        (Some(before), Some(after)) => format!("{} → {}", side(before), side(after)),
        (Some(before), None) => format!("was {}", side(before)),
        (None, Some(after)) => side(after),
        (None, None) if file.change == PathChange::Deleted && file.kind == PathKind::File => "not read".to_owned(),
        (None, None) => String::new(),
    }
}

fn foot(changes: &RunChanges, columns: usize, palette: Palette) -> String {
    let mut page = format!("{}\n", summary(&changes.files));
    let mut add = |line: &str| {
        for row in text::wrapped(line, columns) {
            writeln!(page, "{}", palette.dim(&row)).ok();
        }
    };
    if changes.files.iter().any(|file| file.after_web) {
        add("† the run had read from the web before it wrote this");
    }
    if !changes.secrets_kept_out.is_empty() {
        let named: Vec<_> = changes.secrets_kept_out.iter().take(5).map(|path| text::quoted(path)).collect();
        let more = changes.secrets_kept_out.len().saturating_sub(named.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        add(&format!("not shown to the run, because secrets are kept under such names: {}{more}", named.join(", ")));
    }
    page
}
