//! A run as it happens, on stderr: a line for each step and call, on a terminal a spinner, and where the answer goes to the same
//! terminal the model's words as they arrive.

use llm::Usage;
use motor::{LiveEvent, ToolNote};
use tokio::time::Instant;

use super::status::{asked, door};
use crate::output::flow::Flow;
use crate::output::{CLEAR, Output, Palette, text};

/// Pictures of the spinner.
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Columns left of the model's words, which belong to a step.
const INDENT: usize = 2;

/// Shows the events of a run on the terminal.
pub(super) struct LiveView<'a> {
    output: &'a Output,
    verbose: bool,
    /// The thing waited for, and since when.
    waiting: Option<(String, Instant)>,
    frame: usize,
    /// The spinner is on the screen.
    spinning: bool,
    /// The step that the model works on.
    step: u32,
    /// The model's words that are on the screen, below their step.
    streamed: Option<StreamedText>,
    /// The text of the last reply, if the whole of it is on the screen.
    shown: Option<String>,
    /// Text that came with calls: shown if it turns out not to be the answer.
    said: Option<String>,
}

struct StreamedText {
    flow: Flow,
    words: String,
}

impl<'a> LiveView<'a> {
    pub(super) fn new(output: &'a Output, verbose: bool) -> Self {
        Self {
            output,
            verbose,
            waiting: Some(("starting".to_owned(), Instant::now())),
            frame: 0,
            spinning: false,
            step: 1,
            streamed: None,
            shown: None,
            said: None,
        }
    }

    /// Whether this text is the last thing that the model said on the screen, so that it need not be printed again.
    pub(super) fn has_shown(&self, answer: &str) -> bool {
        self.shown.as_deref() == Some(answer.trim())
    }

    /// Shows one event of the run.
    pub(super) fn show(&mut self, event: &LiveEvent) {
        match event {
            LiveEvent::Preparing { preparing, .. } if self.output.live => {
                self.wait(text::quoted(&preparing.to_string()))
            }
            LiveEvent::Preparing { preparing, .. } => self.output.notice(Some(&text::quoted(&preparing.to_string()))),
            LiveEvent::StepStarted { step, max, .. } => {
                self.step = *step;
                self.wait(format!("step {step}/{max}: waiting for the model"));
            }
            LiveEvent::TextDelta { text, .. } => self.stream(text),
            LiveEvent::ReasoningDelta { .. } => {
                self.wait_for_once("the model thinks");
            }
            LiveEvent::ToolNote { tool, note: ToolNote::Progress { message, .. }, .. } => {
                self.wait(format!("{}: {}", text::brief(tool, 30), text::brief(message, 60)));
            }
            LiveEvent::ModelReplied { step, text, .. } => {
                // That the next one begins may be lost on its way.
                self.step = step + 1;
                // Words can be lost on their way, and a reply can differ from the streamed text: such a reply is shown
                // again.
                let streamed = self.end_stream();
                match line(event, usize::MAX, self.verbose, Palette::new(false)) {
                    // Below the words and the step's number, which are there already.
                    Some(line) if streamed.is_some() => {
                        let facts = line.split_once("  ").map_or(line.as_str(), |(_, facts)| facts);
                        self.print(&self.output.err.dim(&text::cut(&format!("  {facts}"), self.columns(0))));
                    }
                    _ => self.line(event),
                }
                let words = streamed.filter(|words| words.trim() == text.trim());
                self.shown = words.map(|words| words.trim().to_owned());
                self.said = (self.shown.is_none() && !text.trim().is_empty()).then(|| text.clone());
            }
            LiveEvent::ToolStarted { tool, .. } => {
                if let Some(said) = self.said.take() {
                    self.print(&format!("  {}", self.output.err.dim(&text::brief(&said, self.columns(2)))));
                }
                self.line(event);
                self.wait(text::brief(tool, 30));
            }
            LiveEvent::ToolFinished { requests, .. } => {
                self.line(event);
                // The owner may want to allow a refused request: it is worth a line of its own.
                for refused in requests.iter().filter(|request| request.rule.is_some()) {
                    let line = text::cut(&text::one_line(&asked(refused)), self.columns(4));
                    self.print(&format!("    {}", self.output.err.yellow(&line)));
                }
            }
            // From here on another prompt has the screen.
            LiveEvent::Asked { .. } | LiveEvent::ApprovalAsked { .. } => {
                self.line(event);
                self.end();
            }
            LiveEvent::Finished { .. } => self.end(),
            other => self.line(other),
        }
    }

    /// Moves the spinner on.
    pub(super) fn tick(&mut self) {
        let Some((what, since)) = &self.waiting else { return };
        if !self.output.live || self.streamed.is_some() {
            return;
        }
        self.frame = (self.frame + 1) % FRAMES.len();
        let picture = FRAMES.get(self.frame).copied().unwrap_or_default();
        let took = text::millis(since.elapsed().as_secs_f64() * 1_000.0);
        let line = text::cut(&format!("{picture} {what} ({took})"), self.columns(1));
        self.output.stream_trusted(&format!("{CLEAR}{}", self.output.err.cyan(&line)));
        self.spinning = true;
    }

    /// Leaves the screen in order.
    pub(super) fn end(&mut self) {
        self.clear();
        self.waiting = None;
        self.said = None;
    }

    /// Something takes its time from here on.
    pub(super) fn wait(&mut self, what: String) {
        self.waiting = Some((what, Instant::now()));
    }

    fn wait_for_once(&mut self, what: &str) {
        if self.waiting.as_ref().is_some_and(|(waiting, _)| waiting != what) {
            self.wait(what.to_owned());
        }
    }

    fn stream(&mut self, words: &str) {
        if !self.output.streams {
            self.wait_for_once("the model writes");
            return;
        }
        let (mut streamed, words) = match self.streamed.take() {
            Some(streamed) => (streamed, words),
            None if words.trim().is_empty() => return,
            None => {
                self.print(&self.output.err.dim(&format!("step {}", self.step)));
                let flow = Flow::new(INDENT, self.output.err_columns);
                (StreamedText { flow, words: String::new() }, words.trim_start())
            }
        };
        streamed.words.push_str(words);
        self.output.stream_trusted(&streamed.flow.push(words));
        self.streamed = Some(streamed);
    }

    /// Ends the row of the model's words, and gives the words.
    fn end_stream(&mut self) -> Option<String> {
        let StreamedText { mut flow, words } = self.streamed.take()?;
        self.output.stream_trusted(&format!("{}\n", flow.finish()));
        Some(words)
    }

    fn line(&mut self, event: &LiveEvent) {
        if let Some(line) = line(event, self.columns(0), self.verbose, self.output.err) {
            self.print(&line);
        }
    }

    fn print(&mut self, line: &str) {
        self.clear();
        self.output.say_trusted(line);
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.spinning) {
            self.output.stream_trusted(CLEAR);
        }
        self.end_stream();
    }

    fn columns(&self, taken: usize) -> usize {
        self.output.err_columns.saturating_sub(taken)
    }
}

/// An event as a line of at most `columns`, if it is worth one.
fn line(event: &LiveEvent, columns: usize, verbose: bool, palette: Palette) -> Option<String> {
    Some(match event {
        LiveEvent::Resumed { .. } => palette.yellow("the host had stopped: the run goes on"),
        LiveEvent::ModelRetry { reason, wait_ms, .. } => {
            let line = format!("  model: {}; again in {}", text::one_line(reason), text::whole_millis(*wait_ms));
            palette.yellow(&text::cut(&line, columns))
        }
        LiveEvent::ModelReplied { step, model, usage, duration_ms, .. } => {
            let line = format!(
                "step {step}  {}  {}{}",
                text::one_line(model),
                text::whole_millis(*duration_ms),
                tokens(*usage)
            );
            palette.dim(&text::cut(&line, columns))
        }
        LiveEvent::ToolStarted { tool, arguments, .. } => {
            let line = format!("  → {} {}", text::brief(tool, 30), text::brief(&arguments.to_string(), columns));
            text::cut(&line, columns)
        }
        LiveEvent::ToolNote { tool, note: ToolNote::Notice { message }, .. } => {
            let line = format!("    {} notice: {}", text::brief(tool, 30), text::brief(message, columns));
            palette.yellow(&text::cut(&line, columns))
        }
        LiveEvent::ToolNote { tool, note: ToolNote::Log { level, message }, .. } => {
            if !verbose && matches!(level.as_str(), "debug" | "info") {
                return None;
            }
            let line = format!("    {} {level}: {}", text::brief(tool, 30), text::brief(message, columns));
            palette.dim(&text::cut(&line, columns))
        }
        LiveEvent::ToolFinished { tool, result, usage, .. } => {
            let fuel = usage.map(|usage| format!(", fuel {}", text::count(usage.fuel))).unwrap_or_default();
            let code = result.error_code.map(|code| format!(" {code}")).unwrap_or_default();
            let (mark, paint): (_, fn(Palette, &str) -> String) =
                if result.ok { ("✓", Palette::green) } else { ("✗", Palette::red) };
            let facts = format!("{}{code} {}{fuel}: ", text::brief(tool, 30), text::whole_millis(result.duration_ms));
            let rest = text::brief(&result.output, columns.saturating_sub(text::width(&facts) + 4));
            format!("  {} {}{}", paint(palette, mark), text::cut(&facts, columns.saturating_sub(4)), palette.dim(&rest))
        }
        LiveEvent::HostSaid { text, .. } => {
            palette.yellow(&text::cut(&format!("  host: {}", text::one_line(text)), columns))
        }
        LiveEvent::OwnerSaid { text, consent, .. } => {
            text::cut(&format!("  told by {}: {}", door(consent), text::brief(text, columns)), columns)
        }
        LiveEvent::Asked { question, .. } => {
            palette.yellow(&text::cut(&format!("  asks: {}", text::brief(&question.question, columns)), columns))
        }
        LiveEvent::ApprovalAsked { approval, .. } => {
            let what: Vec<_> = approval.items.iter().map(|item| text::brief(&item.summary, columns)).collect();
            palette.yellow(&text::cut(&format!("  asks for consent: {}", what.join("; ")), columns))
        }
        LiveEvent::Answered { answer, consent, .. } => {
            let line = format!("  answered by {}: {}", door(consent), text::brief(answer, columns));
            text::cut(&line, columns)
        }
        LiveEvent::ApprovalDecided { granted, scope, consent, .. } => {
            let line = if *granted {
                palette.green(&format!("  allowed ({}) by {}", scope.as_str(), door(consent)))
            } else {
                palette.red(&format!("  refused by {}", door(consent)))
            };
            return Some(line);
        }
        LiveEvent::Retried { attempt, .. } => palette.yellow(&format!("attempt {}", attempt + 1)),
        LiveEvent::Suspended { reason, .. } => palette.yellow(&text::cut(&text::one_line(reason), columns)),
        _ => return None,
    })
}

fn tokens(usage: Usage) -> String {
    if usage.input_tokens + usage.output_tokens == 0 {
        return String::new();
    }
    let input = text::tokens_in(usage.input_tokens, usage.cached_input_tokens);
    format!("  {input}, {} out", text::thousands(usage.output_tokens))
}

#[cfg(test)]
mod tests {
    use base::{ErrorCode, Timestamp};
    use motor::{SandboxUsage, ToolResult};
    use serde_json::json;

    use super::*;

    const AT: Timestamp = Timestamp::from_millis(0);

    fn check(event: &LiveEvent, expected: Option<&str>) {
        let line = line(event, 60, false, Palette::new(false));
        assert_eq!(line.as_deref(), expected);
        assert!(line.is_none_or(|line| text::width(&line) <= 60 && !line.contains('\u{1b}')));
    }

    fn finished(result: ToolResult) -> LiveEvent {
        let usage = Some(SandboxUsage { fuel: 1_234_567, ..SandboxUsage::default() });
        LiveEvent::ToolFinished {
            at: AT,
            step: 1,
            call_id: "c".into(),
            tool: "read".into(),
            result,
            usage,
            requests: Vec::new(),
        }
    }

    #[test]
    fn calls_and_their_results_are_lines_that_fit() {
        let started =
            |arguments| LiveEvent::ToolStarted { at: AT, step: 1, call_id: "c".into(), tool: "read".into(), arguments };
        check(&started(json!({"path": "a.csv"})), Some("  → read {\"path\":\"a.csv\"}"));
        let long = "x".repeat(100);
        let line = line(&started(json!({"path": long})), 60, false, Palette::new(false)).unwrap();
        assert_eq!((text::width(&line), line.ends_with('…')), (60, true));
        check(&finished(ToolResult::success("one\ntwo")), Some("  ✓ read 0 ms, fuel 1.2 M: one two"));
        let failed = ToolResult { duration_ms: 12, ..ToolResult::failure(ErrorCode::NotFound, "no `a`\u{1b}[2J") };
        check(&finished(failed), Some("  ✗ read not_found 12 ms, fuel 1.2 M: no `a` [2J"));
        check(
            &finished(ToolResult::success("字".repeat(100))),
            Some("  ✓ read 0 ms, fuel 1.2 M: 字字字字字字字字字字字字字字字字…"),
        );
    }

    #[test]
    fn notes_of_little_weight_are_for_those_who_ask() {
        let note = |level: &str| LiveEvent::ToolNote {
            at: AT,
            step: 1,
            call_id: "c".into(),
            tool: "read".into(),
            note: ToolNote::Log { level: level.into(), message: "m".into() },
        };
        check(&note("info"), None);
        check(&note("warn"), Some("    read warn: m"));
        assert!(line(&note("info"), 60, true, Palette::new(false)).is_some());
    }
}
