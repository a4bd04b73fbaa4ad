//! `motor explain`: shows what a run would be allowed to touch, before it starts (SPEC RUN-13).

use std::fmt::Write as _;

use agent::{ExplainedCredential, Explanation, FileAccess};
use clap::Args;
use network::TaintedWrite;

use super::context::Context;
use super::grants::GrantArgs;
use super::{Done, consent, input};
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::{Palette, text};

/// Arguments of `motor explain`.
#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The task: its placeholders are credentials that it would be granted. `-` reads it from standard input
    task: Option<String>,
    #[command(flatten)]
    grants: GrantArgs,
}

pub(super) async fn run(arguments: ExplainArgs, context: &Context) -> Done {
    let task = input::text_or_stdin(&arguments.task.unwrap_or_default()).await?;
    let request = arguments.grants.request(task, context)?;
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

fn render(explanation: &Explanation) -> String {
    let mut page = Page::default();
    let Explanation { tools, network, credentials, files, energy, .. } = explanation;
    if let Some(skill) = &explanation.skill {
        // In one place it is called by its name.
        let place = skill.place.to_string();
        let place = if place == skill.name.as_str() { String::new() } else { format!(" in {place}") };
        page.line("skill", &text::revealed(&format!("{}{place}: {}; {}", skill.name, skill.status, skill.reason)));
        page.line("skill", &skill.hash.hex());
        let tools = skill.tools.join(", ");
        page.line(
            "skill",
            &if tools.is_empty() { "no tools of its own".to_owned() } else { format!("its tools: {tools}") },
        );
    }
    page.line("model", explanation.model.as_deref().unwrap_or("none is configured"));
    if tools.is_empty() {
        page.line("tools", "none: it could only answer");
    }
    let widest = tools.iter().map(|tool| text::width(&tool.name)).max().unwrap_or(0);
    for tool in tools {
        let hash = tool.component.map(|hash| format!("  {}", hash.short())).unwrap_or_default();
        let time = text::millis(tool.timeout_ms as f64);
        let (name, effects) = (text::quoted(&tool.name), text::one_line(&tool.effects));
        page.row("tools", &format!("{name:<widest$}  {effects}; at most {time}{hash}"));
    }
    if let Some(commands) = &explanation.commands {
        let commands = if commands.is_empty() { "none".to_owned() } else { commands.join(", ") };
        page.line("commands", &format!("bash only: {commands}"));
    }
    if network.domains.is_empty() {
        page.line("domains", "none: every request would be refused");
    }
    for domain in &network.domains {
        let refused = if network.refused.contains(domain) { ", but refused by the owner" } else { "" };
        page.line("domains", &format!("{domain}{refused}"));
    }
    for refused in network.refused.iter().filter(|refused| !network.domains.contains(refused)) {
        page.line("domains", &format!("{refused} is refused by the owner"));
    }
    if !network.domains.is_empty() {
        page.line("writing", &writing(explanation));
        for shape in &network.writes {
            let what = if shape.is_whole_host() { "everything to " } else { "" };
            page.line("writing", &format!("{what}{shape} at any time"));
        }
        if !network.private.is_empty() {
            page.line(
                "private",
                &format!("{} where granted exactly, beside the name that leads there", network.private.join(", ")),
            );
        }
    }
    if credentials.is_empty() {
        page.line("credentials", "none");
    }
    for credential in credentials {
        page.line("credentials", &credential_line(credential));
    }
    let access = match files.access {
        FileAccess::None => "none".to_owned(),
        FileAccess::Read => format!("/workspace, reading; {}", room(explanation)),
        FileAccess::ReadWrite => format!("/workspace, reading and writing; {}", room(explanation)),
    };
    page.line("files", &access);
    for input in &files.inputs {
        page.line("files", &format!("/workspace/{input} is copied in"));
    }
    let limits = &explanation.limits;
    page.line(
        "limits",
        &format!(
            "{} model calls in at most {}",
            explanation.max_iterations,
            text::millis(explanation.timeout_ms as f64)
        ),
    );
    page.line(
        "limits",
        &format!(
            "each tool call: {} of memory, {} requests, {} out, {} in",
            bytes(limits.memory_bytes),
            limits.outgoing_requests,
            bytes(limits.request_bytes),
            bytes(limits.response_bytes)
        ),
    );
    page.line(
        "energy",
        &if energy.enabled {
            format!(
                "{:.2} now; costs {:.2}, and {:.2} for each model call after {}: {:.2} at most",
                energy.level, energy.base, energy.per_iteration, energy.free_iterations, energy.most
            )
        } else {
            "switched off".to_owned()
        },
    );
    page.text
}

/// How writes are treated after reading from the web (SPEC TAINT-1).
fn writing(explanation: &Explanation) -> String {
    let then = match explanation.network.tainted_write {
        TaintedWrite::Allow => "allowed",
        TaintedWrite::Ask => "refused until the owner allows it",
        TaintedWrite::Deny => "refused",
    };
    format!("after it has read from the web: {then}")
}

fn credential_line(credential: &ExplainedCredential) -> String {
    let ExplainedCredential { name, source, domains, raw } = credential;
    let Some(source) = source else { return format!("{name}: not set") };
    let towards = if domains.is_empty() { "nowhere".to_owned() } else { domains.join(", ") };
    let source = match source {
        vault::CredentialSource::Vault => "vault",
        vault::CredentialSource::Environment => "environment",
    };
    let raw = if *raw { "; COMPONENTS MAY SEE ITS VALUE" } else { "" };
    format!("{name}: from the {source}, to {towards}{raw}")
}

fn room(explanation: &Explanation) -> String {
    let files = &explanation.files;
    format!("{} in {} files at most", bytes(files.most_bytes), files.most_files)
}

fn bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} B"),
        1024..1_048_576 => format!("{} KiB", count >> 10),
        _ => format!("{} MiB", count >> 20),
    }
}

/// Lines with a label that is shown once for each group.
#[derive(Default)]
struct Page {
    text: String,
    last: String,
}

impl Page {
    fn line(&mut self, label: &str, line: &str) {
        self.row(label, &text::one_line(line));
    }

    /// A line of several columns, which is fit to be shown.
    fn row(&mut self, label: &str, line: &str) {
        let shown = if self.last == label { "" } else { label };
        writeln!(self.text, "{shown:<LABEL$}{line}").ok();
        label.clone_into(&mut self.last);
    }
}
