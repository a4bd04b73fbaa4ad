//! A whole run for people: what was asked, each step, each call, what came of it.

use std::fmt::Write as _;

use base::{Provenance, Timestamp};
use motor::{OutgoingRequest, RunStatus, RunTrace, StepTrace, ToolCallTrace};

use super::signals::seconds;
use crate::output::{Palette, text};

/// Columns before the value of a field.
const LABEL: usize = 10;

/// The run in at most `columns`; with `usize::MAX` nothing is cut.
pub(super) fn render(trace: &RunTrace, now: Timestamp, columns: usize, palette: Palette) -> String {
    let mut page = Page { text: String::new(), columns, palette };
    page.head(trace, now);
    for step in &trace.steps {
        page.step(step);
    }
    page.end(trace);
    page.text
}

struct Page {
    text: String,
    columns: usize,
    palette: Palette,
}

impl Page {
    fn head(&mut self, trace: &RunTrace, now: Timestamp) {
        let status = match trace.status {
            RunStatus::Completed => self.palette.green(trace.status.as_str()),
            RunStatus::Failed | RunStatus::Cancelled => self.palette.red(trace.status.as_str()),
            _ => self.palette.yellow(trace.status.as_str()),
        };
        let took = match (trace.started_at, trace.completed_at) {
            (Some(_), Some(_)) => format!(" in {}", text::whole_millis(trace.total_duration_ms)),
            (Some(started), None) => format!(" for {}", text::age(now.since(started))),
            _ => String::new(),
        };
        self.line(&format!("{}  {status}{took}", self.palette.bold(trace.run_id.as_str())));
        self.field(0, "task", &trace.task);
        self.field(0, "agent", trace.agent.as_str());
        self.field(
            0,
            "tools",
            if trace.tools.is_empty() { "none".to_owned() } else { trace.tools.join(", ") }.as_str(),
        );
        self.field(
            0,
            "created",
            &format!("{}, {}", seconds(trace.created_at), ago(&text::age(now.since(trace.created_at)))),
        );
        let resumed = trace.transitions.iter().filter(|transition| transition.resumed).count();
        if resumed > 0 {
            self.field(0, "resumed", &format!("{resumed} times after the host had stopped").replace("1 times", "once"));
        }
        let usage = trace.total_usage;
        let cost = usage.cost_usd.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
        self.field(
            0,
            "model",
            &format!(
                "{}, {} tokens in, {} out{cost}",
                text::plural(trace.llm_calls.into(), "call"),
                text::thousands(usage.input_tokens),
                text::thousands(usage.output_tokens)
            ),
        );
        let failed = if trace.errors > 0 { format!(", {} failed", trace.errors) } else { String::new() };
        self.field(0, "calls", &format!("{}{failed}", text::plural(trace.tool_calls.into(), "tool call")));
        self.field(0, "energy", &format!("{:.2}", trace.total_energy_cost));
    }

    fn step(&mut self, step: &StepTrace) {
        self.text.push('\n');
        let mut line = format!(
            "step {}  {}  {}",
            step.iteration,
            text::one_line(&step.llm_model),
            text::whole_millis(step.duration_ms)
        );
        if step.usage.input_tokens + step.usage.output_tokens > 0 {
            write!(
                line,
                "  {} tokens in, {} out",
                text::thousands(step.usage.input_tokens),
                text::thousands(step.usage.output_tokens)
            )
            .ok();
        }
        if step.retries > 0 {
            write!(line, ", {} again", text::plural(step.retries.into(), "time")).ok();
        }
        if step.recovered_call {
            line.push_str(", call read from text");
        }
        self.line(&self.palette.bold(&text::cut(&line, self.columns)));
        if !step.text.trim().is_empty() && !step.tool_calls.is_empty() {
            self.field(2, "said", &step.text);
        }
        for call in &step.tool_calls {
            self.call(call);
        }
        for message in &step.host_messages {
            self.field(2, "host", message);
        }
    }

    fn call(&mut self, call: &ToolCallTrace) {
        let name = text::brief(&call.tool, 30);
        let Some(result) = &call.result else {
            self.line(&format!("  {} {name}  no result", self.palette.yellow("·")));
            self.field(4, "arguments", &call.args.to_string());
            return;
        };
        let mark = if result.ok { self.palette.green("✓") } else { self.palette.red("✗") };
        let outcome = result.error_code.map_or("ok", base::ErrorCode::as_str);
        let mut facts = format!("{name}  {outcome}  {}", text::whole_millis(call.duration_ms));
        if let Some(fuel) = call.fuel {
            write!(facts, "  fuel {}", text::count(fuel)).ok();
        }
        if let Some(bytes) = call.peak_memory_bytes {
            write!(facts, "  {}", text::bytes(bytes)).ok();
        }
        facts.push_str(match result.provenance {
            Provenance::User => "  from the user",
            Provenance::Web => "  from the web",
            Provenance::Internal => "  internal",
        });
        if call.retried {
            facts.push_str("  second try");
        }
        if call.recovered {
            facts.push_str("  after a restart");
        }
        self.line(&format!("  {mark} {}", text::cut(&facts, self.columns.saturating_sub(4))));
        self.field(4, "arguments", &call.args.to_string());
        for request in &call.requests {
            self.field(4, "network", &asked(request));
        }
        self.field(4, "result", &result.output);
    }

    fn end(&mut self, trace: &RunTrace) {
        if let Some(error) = &trace.error {
            self.text.push('\n');
            let last = error.last_step.as_ref().map(|step| format!(" (at {step})")).unwrap_or_default();
            self.whole("error", &format!("{}{last}", error.message));
            if let Some(remedy) = &error.remedy {
                self.whole("help", remedy);
            }
        }
        let heading = if trace.status == RunStatus::Completed { "answer" } else { "said last" };
        if let Some(answer) = trace.summary.as_deref().filter(|answer| !answer.trim().is_empty()) {
            self.text.push('\n');
            self.line(&self.palette.bold(heading));
            self.line(&text::printable(answer));
        }
    }

    /// A field on one line, cut; whole and over several lines when nothing is to be cut.
    fn field(&mut self, indent: usize, label: &str, value: &str) {
        let label = self.palette.dim(&format!("{label:<LABEL$}"));
        let margin = " ".repeat(indent);
        if self.columns == usize::MAX {
            let value = text::printable(value);
            let next = format!("\n{margin}{}", " ".repeat(LABEL));
            self.line(&format!("{margin}{label}{}", value.trim_end().replace('\n', &next)));
        } else {
            let room = self.columns.saturating_sub(indent + LABEL);
            self.line(&format!("{margin}{label}{}", text::brief(value, room)));
        }
    }

    /// A field that is never cut.
    fn whole(&mut self, label: &str, value: &str) {
        let label = self.palette.dim(&format!("{label:<LABEL$}"));
        self.line(&format!("{label}{}", text::one_line(value)));
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}

fn ago(age: &str) -> String {
    if age == "now" { "just now".to_owned() } else { format!("{age} ago") }
}

/// A request on one line: what was asked and what came of it.
pub(super) fn asked(request: &OutgoingRequest) -> String {
    let OutgoingRequest { method, url, status, .. } = request;
    let came = match (status, &request.rule, &request.error) {
        (_, Some(rule), _) => format!("refused: {rule}"),
        (Some(status), _, None) => format!("{status}, {}", text::bytes(request.received_bytes)),
        (Some(status), _, Some(error)) => format!("{status}, then {error}"),
        (None, None, error) => error.clone().unwrap_or_else(|| "no answer".to_owned()),
    };
    let credentials = match request.credentials.as_slice() {
        [] => String::new(),
        names => format!(" with {}", names.join(", ")),
    };
    format!("{method} {url}{credentials}: {came}")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn trace() -> RunTrace {
        let result = |ok: bool, output: &str| {
            let code = (!ok).then_some("not_found");
            json!({ "ok": ok, "output": output, "errorCode": code, "retryable": false, "provenance": "internal", "durationMs": 12 })
        };
        let usage = json!({ "input_tokens": 1_234, "output_tokens": 56 });
        let steps = json!([{
            "iteration": 1, "timestamp": 2_000, "llmModel": "openai/x", "text": "let me look", "usage": usage,
            "durationMs": 1_200, "retries": 0, "recoveredCall": false,
            "toolCalls": [
                { "callId": "a", "tool": "read", "args": { "path": "orders.csv" }, "durationMs": 12, "fuel": 1_234_567,
                  "peakMemoryBytes": 1_179_648, "result": result(true, &"id,region\n".repeat(40)) },
                { "callId": "b", "tool": "read", "args": { "path": "no.csv" }, "durationMs": 3, "fuel": 9_000,
                  "result": result(false, "`no.csv` does not exist") },
                { "callId": "c", "tool": "code", "args": { "code": "return 1" }, "durationMs": 0 },
            ],
        }]);
        let error =
            json!({ "category": "tool_failure", "message": "`read` failed 3 times", "lastStep": "step 1: read" });
        serde_json::from_value(json!({
            "runId": "run_01khzabcdefghijk", "agent": "main", "task": "Work out the totals\nof every region",
            "tools": ["code", "read"], "status": "failed", "createdAt": 1_000, "startedAt": 1_000, "completedAt": 4_500,
            "summary": "I could not\u{1b}[2J", "error": error, "transitions": [], "totalIterations": 1,
            "totalDurationMs": 3_500, "totalEnergyCost": 0.1, "totalUsage": usage, "llmCalls": 1, "toolCalls": 2,
            "errors": 1, "steps": steps,
        }))
        .unwrap()
    }

    #[test]
    fn a_run_fits_80_columns_and_shows_each_call() {
        let text = render(&trace(), Timestamp::from_millis(65_000), 80, Palette::new(false));
        expect![[r#"
            run_01khzabcdefghijk  failed in 3.5 s
            task      Work out the totals of every region
            agent     main
            tools     code, read
            created   1970-01-01 00:00:01, 1 min ago
            model     1 call, 1,234 tokens in, 56 out
            calls     2 tool calls, 1 failed
            energy    0.10

            step 1  openai/x  1.2 s  1,234 tokens in, 56 out
              said      let me look
              ✓ read  ok  12 ms  fuel 1.2 M  1.1 MiB  internal
                arguments {"path":"orders.csv"}
                result    id,region id,region id,region id,region id,region id,region id,re…
              ✗ read  not_found  3 ms  fuel 9.0 k  internal
                arguments {"path":"no.csv"}
                result    `no.csv` does not exist
              · code  no result
                arguments {"code":"return 1"}

            error     `read` failed 3 times (at step 1: read)

            said last
            I could not�[2J
        "#]]
        .assert_eq(&text);
        assert!(text.lines().all(|line| text::width(line) <= 80));
    }

    #[test]
    fn on_request_nothing_is_cut() {
        let text = render(&trace(), Timestamp::from_millis(65_000), usize::MAX, Palette::new(false));
        assert_eq!(text.matches("id,region").count(), 40);
        assert!(!text.contains('…') && !text.contains('\u{1b}'));
    }
}
