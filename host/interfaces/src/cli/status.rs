//! A whole run for people: the task, each step, each call, the outcome.

use std::fmt::Write as _;

use base::{ConsentRecord, Door, Provenance, Timestamp};
use motor::{
    ApprovalTrace, AttemptTrace, InstalledSkill, OutgoingRequest, OwnerMessageTrace, QuestionTrace, RunStatus,
    RunTrace, StepTrace, ToolCallTrace, Waiting,
};

use super::answer::command;
use super::files::MAX_LISTED;
use super::skill::left_behind;
use crate::output::flow::Flow;
use crate::output::{Palette, text};
use crate::words::card::Card;
use crate::words::cost;
use crate::words::staged::summary;

/// Columns before the value of a field.
const LABEL: usize = 10;
/// Columns of a question if nothing is cut.
const MAX_COLUMNS: usize = 160;

/// The run in at most `columns`; with `usize::MAX` nothing is cut.
pub(super) fn render(trace: &RunTrace, now: Timestamp, columns: usize, palette: Palette) -> String {
    let mut page = Page { text: String::new(), columns, palette };
    page.head(trace, now);
    for step in &trace.steps {
        for attempt in trace.attempts.iter().filter(|attempt| attempt.first_step == step.iteration) {
            page.attempt(attempt);
        }
        page.step(step);
        for question in trace.questions.iter().filter(|asked| asked.question.step == step.iteration) {
            page.question(question);
        }
        for approval in trace.approvals.iter().filter(|asked| asked.approval.step == step.iteration) {
            page.approval(approval);
        }
    }
    for told in &trace.owner_messages {
        page.told(told);
    }
    // Those that came to no step.
    let steps = trace.steps.last().map_or(0, |step| step.iteration);
    for attempt in trace.attempts.iter().filter(|attempt| attempt.first_step > steps) {
        page.attempt(attempt);
    }
    page.end(trace);
    if let Some(waiting) = &trace.waiting {
        page.waiting(trace, waiting, now);
    }
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
            (Some(started), None) => format!(" for {}", text::age(now.since(started)).replace("now", "less than 1 s")),
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
            &format!("{}, {}", text::seconds(trace.created_at), ago(&text::age(now.since(trace.created_at)))),
        );
        let resumed = trace.transitions.iter().filter(|transition| transition.resumed).count();
        if resumed > 0 {
            self.field(0, "resumed", &format!("{resumed} times after the host had stopped").replace("1 times", "once"));
        }
        let usage = trace.total_usage;
        let cost = match cost::brief(usage.cost_usd, trace.unpriced_replies.into()).as_str() {
            "" => String::new(),
            "unknown" => ", cost unknown".to_owned(),
            cost => format!(", {cost}"),
        };
        let cap = trace.usd_cap.map(|cap| format!(" of at most {cap}")).unwrap_or_default();
        self.field(
            0,
            "model",
            &format!(
                "{}, {}, {} out{cost}{cap}",
                text::plural(trace.llm_calls.into(), "call"),
                text::tokens_in(usage.input_tokens, usage.cached_input_tokens),
                text::thousands(usage.output_tokens)
            ),
        );
        let failed = if trace.errors > 0 { format!(", {} failed", trace.errors) } else { String::new() };
        self.field(0, "calls", &format!("{}{failed}", text::plural(trace.tool_calls.into(), "tool call")));
        if let Some(seed) = trace.seed {
            self.field(0, "seed", &seed.to_string());
        }
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
                "  {}, {} out",
                text::tokens_in(step.usage.input_tokens, step.usage.cached_input_tokens),
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

    fn attempt(&mut self, attempt: &AttemptTrace) {
        self.text.push('\n');
        self.line(&self.palette.bold(&format!("attempt {}", attempt.index + 1)));
        if let Some(guidance) = &attempt.guidance {
            self.field(2, "guidance", guidance);
        }
        if let Some(error) = &attempt.error {
            self.field(2, "failed", &error.message);
        }
    }

    fn question(&mut self, asked: &QuestionTrace) {
        self.field(2, "asked", &text::revealed(&asked.question.question));
        if let (Some(answer), Some(consent)) = (&asked.answer, &asked.consent) {
            self.field(2, "answer", &format!("{answer} (by {})", door(consent)));
        }
    }

    fn told(&mut self, told: &OwnerMessageTrace) {
        self.field(2, "told", &format!("{} (by {}, in step {})", told.text, door(&told.consent), told.step));
    }

    fn approval(&mut self, asked: &ApprovalTrace) {
        let what: Vec<_> = asked.approval.items.iter().map(|item| text::revealed(&item.summary)).collect();
        self.field(2, "asked", &format!("may it: {}", what.join("; ")));
        if let (Some(granted), Some(consent)) = (asked.granted, &asked.consent) {
            let scope = asked.scope.unwrap_or_default().as_str();
            let some = match asked.only.len() {
                0 => String::new(),
                some => format!(", {some} of {}", asked.approval.items.len()),
            };
            let decision = if granted { format!("allowed ({scope}{some})") } else { "refused".to_owned() };
            let why = asked.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            self.field(2, "decision", &format!("{decision} by {}{why}", door(consent)));
        }
    }

    fn waiting(&mut self, trace: &RunTrace, waiting: &Waiting, now: Timestamp) {
        self.text.push('\n');
        for row in Card::of(trace, waiting, now).render(self.columns.min(MAX_COLUMNS), self.palette) {
            self.line(&row);
        }
        self.whole("help", &format!("`{}` answers", command(&trace.run_id, waiting)));
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
        if let Some(failure) = &trace.failure {
            self.whole("next", &failure.suggested_action);
            if let Some(hint) = &failure.hint {
                self.field(0, "hint", hint);
            }
        }
        for unknown in &trace.unknown_outcomes {
            self.whole("unknown", &format!("{unknown}: nobody knows whether it took effect"));
        }
        if trace.staged > 0 {
            self.whole("staged", &summary(&trace.run_id, trace.staged));
        }
        for notice in &trace.notices {
            self.whole("notice", notice);
        }
        if !trace.installed_skills.is_empty() || !trace.artifacts.is_empty() {
            self.text.push('\n');
        }
        for InstalledSkill { name, created, problem, .. } in &trace.installed_skills {
            self.whole("skill", &left_behind(name, *created, problem.as_deref()));
        }
        for artifact in trace.artifacts.iter().take(MAX_LISTED) {
            self.whole("artifact", &format!("{} ({})", artifact.path, text::bytes(artifact.bytes)));
        }
        if let Some(more) = trace.artifacts.len().checked_sub(MAX_LISTED).filter(|more| *more > 0) {
            self.whole("", &format!("and {more} more"));
        }
        let heading = if trace.status == RunStatus::Completed { "answer" } else { "said last" };
        if let Some(answer) = trace.summary.as_deref().filter(|answer| !answer.trim().is_empty()) {
            self.text.push('\n');
            self.line(&self.palette.bold(heading));
            let mut flow = Flow::new(0, self.columns);
            let shown = flow.push(answer);
            self.line(&(shown + &flow.finish()));
        }
    }

    /// A field on one line, cut; whole and over several lines if nothing is to be cut.
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

/// The source of a consent, and the door it came through.
pub(super) fn door(consent: &ConsentRecord) -> String {
    let by = text::one_line(&consent.given_by);
    match consent.door {
        Door::Terminal => format!("{by} at the terminal"),
        Door::Token => format!("{by} with the token"),
        other => format!("{by}, {other:?}"),
    }
}

fn ago(age: &str) -> String {
    if age == "now" { "just now".to_owned() } else { format!("{age} ago") }
}

/// A request on one line: method, URL and outcome.
pub(super) fn asked(request: &OutgoingRequest) -> String {
    let OutgoingRequest { method, url, status, .. } = request;
    let came = match (status, &request.rule, &request.error) {
        (_, Some(rule), _) => match request.staged {
            Some(number) => format!("staged #{number}, not sent"),
            None => format!("refused: {rule}"),
        },
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
mod tests;
