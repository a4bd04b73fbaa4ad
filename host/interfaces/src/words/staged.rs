//! Staged writes in words: the card that the owner consents to, and one line for each write (SPEC LAND-5).

use agent::{StagedResponse, StagedStatus, StagedTask, StagedWrite};
use network::HeldHeader;

use super::card::{Card, Tone};
use crate::output::text;

/// Characters of a URL in a line.
const MAX_LINE: usize = 400;

/// The card of writes, each in full.
pub(crate) fn card<'a>(title: String, task: &StagedTask, writes: impl Iterator<Item = &'a StagedWrite>) -> Card {
    let mut card = Card::new(title).with("task", &task.task);
    for write in writes {
        card = of_write(card, write);
    }
    card
}

/// Adds a write, in full.
fn of_write(card: Card, write: &StagedWrite) -> Card {
    let (tone, state) = state(write);
    let mut card = card.with("", "").toned(tone, "write", format!("#{} {state}", write.number));
    card = card.with("sends", format!("{} {}", write.method, write.url));
    if !write.sources.is_empty() {
        let text = format!("the run had read untrusted content of {}", write.sources.join(", "));
        card = card.toned(Tone::Alarm, "tainted by", text);
    }
    if !write.credentials.is_empty() {
        card = card.toned(Tone::Warning, "with", format!("the credentials {}", write.credentials.join(", ")));
    }
    let headers = lines(&write.headers);
    if !headers.is_empty() {
        card = card.with("headers", headers);
    }
    card = match (&write.body, &write.body_base64) {
        (Some(body), _) => card.toned(Tone::Warning, "body", body),
        (None, Some(body)) => {
            let text = format!("{} bytes that are not text, in base64:\n{body}", text::thousands(write.body_bytes));
            card.toned(Tone::Warning, "body", text)
        }
        (None, None) => card.with("body", "none"),
    };
    card = card.with("key", &write.idempotency_key);
    if let Some(failure) = &write.failure {
        card = card.toned(Tone::Alarm, "failed", failure);
    }
    match &write.response {
        Some(response) => answered(card, response),
        None => card,
    }
}

/// Adds the response to a write.
fn answered(mut card: Card, response: &StagedResponse) -> Card {
    let headers = lines(&response.headers);
    if !headers.is_empty() {
        card = card.with("answer", headers);
    }
    if let Some(body) = &response.body {
        card = card.with("answered", body);
        let shown = body.len() as u64;
        if response.body_bytes > shown {
            let text = format!(
                "only the first {} of {} bytes were kept",
                text::thousands(shown),
                text::thousands(response.body_bytes)
            );
            card = card.toned(Tone::Warning, "", text);
        }
    }
    match &response.broken {
        Some(broken) => card.toned(Tone::Warning, "", format!("the answer broke off: {broken}")),
        None => card,
    }
}

fn lines(headers: &[HeldHeader]) -> String {
    let line = |HeldHeader { name, value }: &HeldHeader| format!("{name}: {value}");
    headers.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The state of a write, and how it looks.
fn state(write: &StagedWrite) -> (Tone, String) {
    match (write.status, &write.response) {
        (StagedStatus::Held, _) => (Tone::Warning, "is held, and was not sent".to_owned()),
        (StagedStatus::Sending, _) => (Tone::Warning, "is being sent".to_owned()),
        (StagedStatus::Sent, Some(response)) => {
            let is_good = (200..400).contains(&response.status);
            (if is_good { Tone::Calm } else { Tone::Alarm }, format!("was sent, and answered with {}", response.status))
        }
        (StagedStatus::Sent, None) => (Tone::Calm, "was sent".to_owned()),
        (StagedStatus::OutcomeUnknown, _) => {
            (Tone::Alarm, "may have been sent: the outcome is unknown, look at the server".to_owned())
        }
        (StagedStatus::Discarded, _) => (Tone::Plain, "was discarded, and is never sent".to_owned()),
    }
}

/// One line about a write.
pub(crate) fn line(write: &StagedWrite) -> String {
    let (_, state) = state(write);
    let failure = write.failure.as_ref().map(|failure| format!(": {failure}")).unwrap_or_default();
    let url = base::text::cut(&write.url, MAX_LINE);
    text::one_line(&format!("#{} {} {url} {state}{failure}", write.number, write.method))
}

/// How many writes a run has staged, and the next step.
pub(crate) fn summary(run: &base::RunId, staged: u32) -> String {
    let writes = text::plural(staged.into(), "write");
    let (is, them) = if staged == 1 { ("is", "it") } else { ("are", "them") };
    format!(
        "{writes} {is} staged and not sent: `motor task staged {run}` shows {them}, `motor task send {run}` sends {them}"
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::{Value, json};

    use super::*;
    use crate::output::Palette;

    fn task(more: &Value) -> StagedTask {
        let mut write = json!({
            "number": 1, "status": "held", "method": "POST", "url": "https://api.example.com/v1/payments?account=main",
            "headers": [{ "name": "content-type", "value": "application/json" },
                { "name": "authorization", "value": "Bearer <credential:bank>" }],
            "idempotencyKey": "run_1-call-0", "credentials": ["bank"], "bodyBytes": 40,
            "body": "{\"to\":\"anna\",\"amount\":12,\n\"note\":\"a\u{202e}b\"}",
            "hash": base::ContentHash::of(b"x"), "stagedAt": 1_000, "sources": ["news.example"],
        });
        write.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let task = json!({ "runId": "run_1", "task": "pay anna", "held": 1, "writes": [write] });
        serde_json::from_value(task).unwrap()
    }

    fn shown(more: &Value) -> String {
        let task = task(more);
        let rows =
            card("run_1 has 1 staged write".to_owned(), &task, task.writes.iter()).render(80, Palette::new(false));
        assert!(rows.iter().all(|row| text::width(row) <= 80));
        rows.join("\n")
    }

    #[test]
    fn a_write_is_shown_in_full_within_80_columns() {
        expect![[r#"
            run_1 has 1 staged write
            task       │ pay anna
                       │ 
            write      │ #1 is held, and was not sent
            sends      │ POST https://api.example.com/v1/payments?account=main
            tainted by │ the run had read untrusted content of news.example
            with       │ the credentials bank
            headers    │ content-type: application/json
                       │ authorization: Bearer <credential:bank>
            body       │ {"to":"anna","amount":12,
                       │ "note":"a<U+202E>b"}
            key        │ run_1-call-0"#]]
        .assert_eq(&shown(&json!({})));
    }

    #[test]
    fn an_answer_and_a_failure_are_shown() {
        let response = json!({ "status": 201, "headers": [{ "name": "location", "value": "/v1/payments/7" }],
            "body": "made", "bodyBytes": 4, "durationMs": 3.0 });
        let sent = shown(&json!({ "status": "sent", "response": response }));
        for part in ["#1 was sent, and answered with 201", "location: /v1/payments/7", "│ made"] {
            assert!(sent.contains(part), "{sent}");
        }
        let unknown =
            json!({ "status": "outcome_unknown", "failure": "the host stopped", "bodyBase64": "/wA=", "body": null });
        let unknown = shown(&unknown);
        for part in ["may have been sent", "the host stopped", "/wA=", "40 bytes that are not text"] {
            assert!(unknown.contains(part), "{unknown}");
        }
        let one = line(&task(&json!({ "failure": "refused" })).writes[0]);
        assert_eq!(one, "#1 POST https://api.example.com/v1/payments?account=main is held, and was not sent: refused");
    }
}
