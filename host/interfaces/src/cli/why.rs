//! `motor why`: where a file, a line, a request or the answer of a run came from.

use agent::api::why::{WhyCall, WhyQuery, WhyReply};
use base::RunId;
use clap::Args;

use super::Done;
use super::context::Context;
use super::task::or_newest;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::text;
use crate::session::Session;

/// The word that stands for the answer of a run.
const ANSWER: &str = "answer";
/// Calls that are shown in full; the others of an answer are a line each.
const FULL: usize = 5;

/// Arguments of `motor why`.
#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub(super) struct WhyArgs {
    /// The run [default: the newest]
    run: Option<RunId>,
    /// `FILE`, `FILE:LINE`, the number of a network request, or `answer`; a file of such a name is `./answer`
    #[arg(required = true)]
    what: String,
}

/// Runs the command `motor why`.
pub(super) async fn run(arguments: WhyArgs, context: &Context) -> Done {
    context.with_host(async |session| show(arguments, session, context).await).await
}

async fn show(arguments: WhyArgs, session: &mut Session, context: &Context) -> Done {
    let WhyArgs { run, what } = arguments;
    let run = or_newest(run, session, context).await?;
    let query = query(&what);
    let mut path = format!("/v1/tasks/{run}/why");
    let encoded =
        |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
    let parts = [
        query.file.as_deref().map(|file| format!("file={}", encoded(file))),
        query.line.map(|line| format!("line={line}")),
        query.request.map(|request| format!("request={request}")),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    if !parts.is_empty() {
        path.push_str(&format!("?{}", parts.join("&")));
    }
    let reply: WhyReply = session.ask(&Call::get(path)).await?;
    context.answer(&reply, || render(&reply, context.output.columns))?;
    Ok(CommandExit::Ok)
}

/// The question that an argument stands for.
fn query(what: &str) -> WhyQuery {
    if what == ANSWER {
        return WhyQuery::default();
    }
    if let Ok(number) = what.parse() {
        return WhyQuery { request: Some(number), ..WhyQuery::default() };
    }
    let (file, line) = match what.rsplit_once(':').map(|(file, line)| (file, line.parse())) {
        Some((file, Ok(line))) => (file, Some(line)),
        _ => (what, None),
    };
    WhyQuery { file: Some(file.to_owned()), line, request: None }
}

fn render(reply: &WhyReply, columns: usize) -> String {
    let mut page = Page { text: String::new(), columns };
    page.line(0, &format!("{} of {}", reply.subject, reply.run_id));
    if let Some(line) = &reply.line {
        page.line(2, line);
    }
    if reply.calls.is_empty() {
        page.line(0, "came from: not recorded");
    }
    for call in reply.calls.iter().take(FULL) {
        page.call(call);
    }
    for call in reply.calls.iter().skip(FULL) {
        page.line(0, &format!("step {}: {} {} ({})", call.step, call.tool, call.arguments, call.outcome));
    }
    page.line(0, "had been read before:");
    for source in &reply.read_before {
        let mark = if source.is_untrusted { ", from outside" } else { "" };
        page.line(2, &format!("step {}{mark}: {}", source.step, source.what));
    }
    if reply.read_before.is_empty() {
        page.line(2, "nothing but the task");
    }
    for missing in &reply.not_recorded {
        page.line(0, &format!("not recorded: {missing}"));
    }
    page.text
}

struct Page {
    text: String,
    columns: usize,
}

impl Page {
    fn call(&mut self, call: &WhyCall) {
        self.line(0, &format!("step {}: {} {} ({})", call.step, call.tool, call.arguments, call.outcome));
        self.line(2, &format!("because: {}", call.because));
        let said = if call.reply.is_empty() { "without words".to_owned() } else { format!("saying: {}", call.reply) };
        self.line(2, &format!("asked for by {}, {said}", call.model));
        match &call.component {
            Some(component) => {
                let name = component.name.as_deref().unwrap_or("of another origin");
                self.line(2, &format!("made by component {} {name}", component.hash.short()));
            }
            None => self.line(2, "made by the host itself, without a component"),
        }
        for allowed in &call.allowed {
            let by = allowed
                .consent
                .as_ref()
                .map(|consent| format!(", by {}, {}", consent.given_by, text::seconds(consent.at)));
            self.line(2, &format!("allowed: {}{}", allowed.what, by.unwrap_or_default()));
        }
        if call.allowed.is_empty() {
            self.line(2, "allowed: not recorded");
        }
    }

    /// A line of the record: its words are of models and pages, so that they are shown on one line with all that is hidden.
    fn line(&mut self, indent: usize, words: &str) {
        let width = self.columns.saturating_sub(indent).max(20);
        self.text.push_str(&" ".repeat(indent));
        self.text.push_str(&text::brief(words, width));
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_a_file_a_line_a_request_or_the_answer() {
        let file = |file: &str, line| WhyQuery { file: Some(file.to_owned()), line, request: None };
        for (what, expected) in [
            ("answer", WhyQuery::default()),
            ("3", WhyQuery { request: Some(3), ..WhyQuery::default() }),
            ("report.md", file("report.md", None)),
            ("src/a.rs:12", file("src/a.rs", Some(12))),
            ("odd:name", file("odd:name", None)),
            ("odd:name:2", file("odd:name", Some(2))),
            ("./answer", file("./answer", None)),
            ("./7", file("./7", None)),
        ] {
            assert_eq!(query(what), expected, "{what}");
        }
    }
}
