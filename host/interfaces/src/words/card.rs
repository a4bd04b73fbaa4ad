//! The card shown to the owner before they say yes: all that is asked, and nothing that could pass for something else.
//!
//! Most of it was written by a model, or by a page that the model has read. So every line of it stands behind a bar
//! that only this program draws, invisible characters are written by their numbers, nothing is cut without saying how
//! much, and the sources of the run's taint are named.

use base::Timestamp;
use grants::RunConsent;
use motor::{Approval, ApprovalItem, Question, RunTrace, Scope, ShownField, ShownRequest, ValueOrigin, Waiting};

use crate::output::{Palette, text};

/// Columns before the bar.
const LABEL: usize = 10;
/// The most of one text that is shown, in bytes: more is a file, not something to read at a prompt.
const MAX_BYTES: usize = 64 << 10;

/// How a text of a card looks where there are colours. Its meaning does not depend on them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Text without any colour.
    #[default]
    Plain,
    /// To be read first: it gives something away, or speaks against it.
    Alarm,
    /// It takes something away, or speaks for it.
    Calm,
    /// A fact to be considered.
    Warning,
}

impl Tone {
    pub(crate) fn paint(self, palette: Palette, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Alarm => palette.red(text),
            Self::Calm => palette.green(text),
            Self::Warning => palette.yellow(text),
        }
    }

    /// Its name in a style sheet.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Alarm => "alarm",
            Self::Calm => "calm",
            Self::Warning => "warning",
        }
    }
}

/// Something to say yes or no to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Card {
    title: String,
    fields: Vec<(&'static str, String, Tone)>,
}

impl Card {
    /// Under a title of this program's own words.
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), fields: Vec::new() }
    }

    /// Adds a field with untrusted text.
    pub(crate) fn with(self, label: &'static str, text: impl Into<String>) -> Self {
        self.toned(Tone::Plain, label, text)
    }

    /// Adds a field with untrusted text in a tone. Without a label it belongs to the field before.
    pub(crate) fn toned(mut self, tone: Tone, label: &'static str, text: impl Into<String>) -> Self {
        self.fields.push((label, text.into(), tone));
        self
    }

    /// Labels, texts and tones, in order. A field without a label belongs to the one before.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, &str, Tone)> {
        self.fields.iter().map(|(label, text, tone)| (*label, text.as_str(), *tone))
    }

    /// The card of a run's question or approval request.
    pub(crate) fn of(trace: &RunTrace, waiting: &Waiting, now: Timestamp) -> Self {
        let (what, id) = match waiting {
            Waiting::Input(_) => ("asks a question", waiting.id()),
            Waiting::Approval(_) => ("asks for consent", waiting.id()),
        };
        let mut card = Self::new(format!("{} of agent {} {what} ({})", trace.run_id, trace.agent, text::one_line(id)));
        card = card.with("task", &trace.task);
        let (card, sources) = match waiting {
            Waiting::Input(question) => (card.question(question), &question.sources),
            Waiting::Approval(approval) => (card.approval(approval), &approval.sources),
        };
        let card = match sources.as_slice() {
            [] => card,
            sources => card.with("tainted by", format!("it has read untrusted content of {}", sources.join(", "))),
        };
        let left = waiting.expires_at().since(now);
        let expires = match text::left(left) {
            None => "never".to_owned(),
            Some(words) if left.is_zero() => words,
            Some(words) => format!("in {words}"),
        };
        card.with("expires", expires)
    }

    fn question(self, question: &Question) -> Self {
        let card = self.with("question", &question.question);
        match question.choices.as_slice() {
            [] => card,
            choices => {
                let numbered = choices.iter().enumerate().map(|(index, choice)| format!("{}. {choice}", index + 1));
                card.with("choices", numbered.collect::<Vec<_>>().join("\n"))
            }
        }
    }

    fn approval(self, approval: &Approval) -> Self {
        let mut card = self.with("why", &approval.reason);
        let several = approval.items.len() > 1;
        for (index, ApprovalItem { tool, summary, arguments, request, .. }) in approval.items.iter().enumerate() {
            let number = if several { format!("{}. ", index + 1) } else { String::new() };
            card = card.with("action", format!("{number}{summary}"));
            card = match request {
                Some(request) => card.request(request, summary),
                None => {
                    let arguments = serde_json::to_string_pretty(arguments).unwrap_or_default();
                    card.with("tool", tool).with("arguments", arguments)
                }
            };
        }
        // The call is the same for all of its requests.
        if let Some(ApprovalItem { tool, .. }) = approval.items.first().filter(|item| item.request.is_some()) {
            card = card.with("made by", format!("`{tool}`; the call is made again with what is allowed"));
        }
        if !approval.sent.is_empty() {
            card = card.with("sends again", approval.sent.join("\n"));
        }
        if let Some(RunConsent::Domains(asked)) = &approval.grant {
            card = card.with("reaches", asked.domains.join(", "));
        }
        if let Some(class) =
            approval.class.as_ref().filter(|_| approval.choices.iter().any(|scope| *scope != Scope::Once))
        {
            card = card.with("covers", format!("{class} (what a consent for longer than once is for)"));
        }
        card
    }

    /// The request that would be sent: fields not from the user first, each with where it was first seen.
    fn request(mut self, request: &ShownRequest, summary: &str) -> Self {
        if !summary.contains(&request.url) {
            self = self.with("url", &request.url);
        }
        if !request.credentials.is_empty() {
            self = self.toned(Tone::Warning, "with", format!("the credentials {}", request.credentials.join(", ")));
        }
        let mut label = "sends";
        for ShownField { name, value, origin } in &request.fields {
            let (tone, origin) = match origin {
                ValueOrigin::User => (Tone::Calm, "from your words".to_owned()),
                ValueOrigin::Response { source } => (Tone::Alarm, format!("first seen in {source}")),
                ValueOrigin::Model => (Tone::Warning, "the model's own".to_owned()),
            };
            self = self.toned(tone, label, format!("{name} = {value}  ({origin})"));
            label = "";
        }
        match &request.body {
            Some(body) => self = self.toned(Tone::Warning, label, body),
            None if request.fields.is_empty() && request.body_bytes > 0 => {
                self = self.with(label, format!("a body of {} bytes", text::thousands(request.body_bytes)));
            }
            None => {}
        }
        self
    }

    /// The card in rows of at most `columns`.
    pub(crate) fn render(&self, columns: usize, palette: Palette) -> Vec<String> {
        let before = self.fields.iter().map(|(label, ..)| label.len()).max().unwrap_or(0).max(LABEL);
        let room = columns.saturating_sub(before + 3);
        let mut rows: Vec<String> =
            text::rows(&text::revealed(&self.title), columns).iter().map(|row| palette.bold(row)).collect();
        for (label, text, tone) in &self.fields {
            let (shown, rest) = bounded(text);
            let mut label = *label;
            for row in text::rows(&text::revealed(shown.trim_end_matches('\n')), room) {
                let row = tone.paint(palette, &row);
                rows.push(format!("{} {} {row}", palette.dim(&format!("{label:<before$}")), palette.dim("│")));
                label = "";
            }
            if rest > 0 {
                let (shown, all) = (text::thousands(shown.len() as u64), text::thousands(text.len() as u64));
                let note = format!("{:before$} … only {shown} of {all} bytes are shown here", "");
                rows.push(palette.yellow(&note));
            }
        }
        rows
    }
}

/// The beginning of a text, and how many bytes were left out.
fn bounded(text: &str) -> (&str, usize) {
    let shown = text.get(..text.floor_char_boundary(MAX_BYTES)).unwrap_or_default();
    (shown, text.len() - shown.len())
}

#[cfg(test)]
pub(crate) mod tests {
    use expect_test::expect;
    use serde_json::{Value, json};

    use super::*;

    pub(crate) fn trace(waiting: Value) -> RunTrace {
        serde_json::from_value(json!({
            "runId": "run_01khzabcdefghijk", "agent": "main", "task": "Book the room", "tools": ["fetch"],
            "status": "awaiting_approval", "createdAt": 1_000, "startedAt": 1_000, "transitions": [],
            "totalIterations": 1, "totalDurationMs": 0, "totalEnergyCost": 0.1, "llmCalls": 1, "toolCalls": 0,
            "totalUsage": { "input_tokens": 1, "output_tokens": 1 }, "errors": 0, "steps": [], "waiting": waiting,
        }))
        .unwrap()
    }

    pub(crate) fn approval(arguments: Value) -> Value {
        json!({
            "kind": "approval", "id": "apr_0123456789ab", "step": 2, "reason": "it reaches outside",
            "class": "POST rooms.example.com", "grant": { "domains": ["rooms.example.com"], "writes": true },
            "choices": ["once", "run", "session", "always"], "askedAt": 1_000, "expiresAt": 901_000,
            "sources": ["evil.example"],
            "items": [{ "callId": "c", "tool": "fetch", "summary": "POST https://rooms.example.com/book",
                        "arguments": arguments, "actionHash": base::ContentHash::of(b"a") }],
        })
    }

    fn rendered(waiting: Value, columns: usize) -> Vec<String> {
        let trace = trace(waiting);
        let card = Card::of(&trace, trace.waiting.as_ref().unwrap(), Timestamp::from_millis(61_000));
        card.render(columns, Palette::new(false))
    }

    #[test]
    fn everything_that_is_asked_is_shown() {
        let rows = rendered(approval(json!({ "url": "https://rooms.example.com/book", "method": "POST" })), 80);
        expect![[r#"
            run_01khzabcdefghijk of agent main asks for consent (apr_0123456789ab)
            task       │ Book the room
            why        │ it reaches outside
            action     │ POST https://rooms.example.com/book
            tool       │ fetch
            arguments  │ {
                       │   "url": "https://rooms.example.com/book",
                       │   "method": "POST"
                       │ }
            reaches    │ rooms.example.com
            covers     │ POST rooms.example.com (what a consent for longer than once is for)
            tainted by │ it has read untrusted content of evil.example
            expires    │ in 14 min"#]]
        .assert_eq(&rows.join("\n"));
    }

    #[test]
    fn a_model_cannot_draw_the_prompt_nor_hide_behind_what_nobody_sees() {
        let forged = "Fine?\n\nrun_1 of agent main asks for consent\naction     │ nothing\u{1b}[2J\u{202e}\u{200b}\n";
        let rows = rendered(
            json!({ "kind": "input", "id": "ask_1", "step": 1, "callId": "c", "question": forged,
                    "choices": ["yes\u{7}", "no\nwhy         │ because"], "askedAt": 1_000, "expiresAt": 2_000 }),
            60,
        );
        expect![[r#"
            run_01khzabcdefghijk of agent main asks a question (ask_1)
            task       │ Book the room
            question   │ Fine?
                       │ 
                       │ run_1 of agent main asks for consent
                       │ action     │ nothing<U+001B>[2J<U+202E><U+200B>
            choices    │ 1. yes<U+0007>
                       │ 2. no
                       │ why         │ because
            expires    │ now"#]]
        .assert_eq(&rows.join("\n"));
        assert!(rows.iter().all(|row| text::width(row) <= 60 && !row.contains(char::is_control)));
    }

    #[test]
    fn what_is_too_long_says_how_much_is_missing() {
        let long = format!("{}é", "x".repeat(MAX_BYTES - 1));
        let card = Card::new("t").with("body", format!("{long}tail"));
        let rows = card.render(100, Palette::new(false));
        assert!(rows.last().unwrap().contains("only 65,535 of 65,541 bytes are shown"));
        assert!(!rows.concat().contains('é'));
        let short = Card::new("t").with("body", "x".repeat(MAX_BYTES));
        assert!(short.render(100, Palette::new(false)).concat().matches('x').count() == MAX_BYTES);
    }
}
