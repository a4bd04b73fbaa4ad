//! A run as it happens, on stderr: lines for what is done, and on a terminal a spinner and the model's words besides.

use std::time::Instant;

use llm::Usage;
use motor::{LiveEvent, ToolNote};

use super::status::{asked, door};
use crate::output::{Output, Palette, text};

/// Pictures of the spinner.
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Goes to the beginning of the line and clears it.
const CLEAR: &str = "\r\u{1b}[2K";

/// Shows events.
pub(super) struct Live<'a> {
    output: &'a Output,
    verbose: bool,
    /// What is waited for, since when.
    waiting: Option<(String, Instant)>,
    frame: usize,
    /// The spinner is on the screen.
    spinning: bool,
    /// The model's words are on the screen, and the line is not ended.
    streaming: bool,
    /// What the model said beside its calls: shown when it turns out not to be the answer.
    said: Option<String>,
}

impl<'a> Live<'a> {
    pub(super) fn new(output: &'a Output, verbose: bool) -> Self {
        Self { output, verbose, waiting: None, frame: 0, spinning: false, streaming: false, said: None }
    }

    /// Shows an event.
    pub(super) fn show(&mut self, event: &LiveEvent) {
        match event {
            LiveEvent::StepStarted { step, max, .. } => self.wait(format!("step {step}/{max}: waiting for the model")),
            LiveEvent::TextDelta { text, .. } => self.stream(text),
            LiveEvent::ReasoningDelta { .. } => {
                if self.waiting.as_ref().is_some_and(|(what, _)| !what.ends_with("thinks")) {
                    self.wait("the model thinks".to_owned());
                }
            }
            LiveEvent::ToolNote { tool, note: ToolNote::Progress { message, .. }, .. } => {
                self.wait(format!("{}: {}", text::brief(tool, 30), text::brief(message, 60)));
            }
            LiveEvent::ModelReplied { text, .. } => {
                // On a terminal it was there as it came.
                let shown = std::mem::take(&mut self.streaming);
                if shown {
                    self.output.stream("\n");
                }
                self.line(event);
                self.said = (!shown && !text.trim().is_empty()).then(|| text.clone());
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
                // What was refused the owner may want to allow: it is worth a line of its own.
                for refused in requests.iter().filter(|request| request.rule.is_some()) {
                    let line = text::cut(&text::one_line(&asked(refused)), self.columns(4));
                    self.print(&format!("    {}", self.output.err.yellow(&line)));
                }
            }
            // From here on somebody else has the screen.
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
        if !self.output.live || self.streaming {
            return;
        }
        self.frame = (self.frame + 1) % FRAMES.len();
        let picture = FRAMES.get(self.frame).copied().unwrap_or_default();
        let took = text::millis(since.elapsed().as_secs_f64() * 1_000.0);
        let line = text::cut(&format!("{picture} {what} ({took})"), self.output.columns.saturating_sub(1));
        self.output.stream(&format!("{CLEAR}{}", self.output.err.cyan(&line)));
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

    fn stream(&mut self, words: &str) {
        if !self.output.live {
            return;
        }
        if !self.streaming {
            self.clear();
            self.streaming = true;
        }
        self.output.stream(&self.output.err.dim(&text::printable(words)));
    }

    fn line(&mut self, event: &LiveEvent) {
        if let Some(line) = line(event, self.columns(0), self.verbose, self.output.err) {
            self.print(&line);
        }
    }

    fn print(&mut self, line: &str) {
        self.clear();
        self.output.say(line);
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.spinning) {
            self.output.stream(CLEAR);
        }
        if std::mem::take(&mut self.streaming) {
            self.output.stream("\n");
        }
    }

    fn columns(&self, taken: usize) -> usize {
        self.output.columns.saturating_sub(taken)
    }
}

/// An event as a line of at most `columns`, when it is worth one.
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
    let (input, output) = (text::thousands(usage.input_tokens), text::thousands(usage.output_tokens));
    format!("  {input} tokens in, {output} out")
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
