//! `motor explain`: shows what a run would be allowed to touch, before it starts (SPEC RUN-13).

use agent::{ActRequest, Explanation};
use clap::Args;

use super::context::Context;
use super::grants::GrantArgs;
use super::{Done, consent, input};
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::Palette;
use crate::words::explanation::rows;

/// Arguments of `motor explain`.
#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The task: its placeholders are credentials that it would be granted. `-` reads it from standard input
    task: Option<String>,
    #[command(flatten)]
    grants: GrantArgs,
    /// Explain a run that asks the owner before each action that reaches outside or cannot be undone
    #[arg(long)]
    approval: bool,
}

pub(super) async fn run(arguments: ExplainArgs, context: &Context) -> Done {
    let task = input::text_or_stdin(&arguments.task.unwrap_or_default()).await?;
    let request = arguments.grants.request(task, context)?;
    let request = ActRequest { approval_required: arguments.approval, ..request };
    context
        .with_host(async |session| {
            let call = consent::signed(Call::post("/v1/explanations", &request)?, context);
            let explanation: Explanation = session.ask(&call).await?;
            context.answer(&explanation, || render(&explanation))?;
            for warning in &explanation.warnings {
                context.output.warn(warning);
            }
            for problem in &explanation.problems {
                let output = &context.output;
                output.say_labelled("missing:", Palette::red, &problem.reason);
                if let Some(remedy) = &problem.remedy {
                    output.say_labelled("help:", Palette::cyan, remedy);
                }
            }
            Ok(explanation.problems.first().map_or(CommandExit::Ok, |problem| problem.code.into()))
        })
        .await
}

/// Columns of the left side.
const LABEL: usize = 13;

/// The rows in one column, a label shown once for each group.
fn render(explanation: &Explanation) -> String {
    let mut last = "";
    let rows = rows(explanation).into_iter().map(|(label, line)| {
        let shown = if std::mem::replace(&mut last, label) == label { "" } else { label };
        format!("{shown:<LABEL$}{line}\n")
    });
    rows.collect()
}
