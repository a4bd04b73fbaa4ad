//! The log of a run for people: one line for each event, times first (SPEC RUN-7).

use base::ConsentRecord;
use base::text::{Foreign, cut};

use crate::event::{RunEvent, StoredEvent};
use crate::request::OutgoingRequest;
use crate::toolbox::ToolNote;

/// Bytes of the shortest line: a time, and the event in a word.
pub(crate) const MIN_LINE: usize = 32;
/// Characters of one text in a line.
const TEXT_CHARACTERS: usize = 300;

/// The end of the log, at most `most` bytes, from events given newest first.
pub(crate) fn tail<'a>(newest_first: impl Iterator<Item = &'a StoredEvent>, most: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut bytes = 0;
    for stored in newest_first {
        let line = line(stored);
        bytes += line.len();
        if bytes > most {
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    lines.concat()
}

/// An event as a line, with its notes on lines before it.
fn line(stored: &StoredEvent) -> String {
    let at = stored.at;
    match &stored.event {
        RunEvent::Created { agent, task, tools, .. } => {
            format!("{at} created for agent {agent}, tools [{}]: {}\n", tools.join(", "), shown(task))
        }
        RunEvent::Started => format!("{at} started\n"),
        RunEvent::Resumed => format!("{at} resumed after the host had stopped\n"),
        RunEvent::ModelReplied { step, reply, duration_ms, recovered_call, .. } => {
            let usage = reply.usage;
            let calls: Vec<_> = reply.tool_calls.iter().map(|call| cut(&call.name, 80)).collect();
            let calls = if calls.is_empty() { String::new() } else { format!(" calls [{}]", calls.join(", ")) };
            let mended = if *recovered_call { " (call read from text)" } else { "" };
            let notices: String =
                reply.notices.iter().map(|notice| format!("{at} step {step} notice: {}\n", shown(notice))).collect();
            format!(
                "{notices}{at} step {step} {} replied in {duration_ms} ms, {} tokens in, {} out{calls}{mended}: {}\n",
                reply.model,
                usage.input_tokens,
                usage.output_tokens,
                shown(&reply.text)
            )
        }
        RunEvent::ToolIntended { step, tool, arguments, .. } => {
            format!("{at} step {step} {tool} begins: {}\n", shown(&arguments.to_string()))
        }
        RunEvent::ToolReturned { step, tool, result, requests, notes, retried, recovered, held, .. } => {
            let mut text = String::new();
            for request in requests {
                text.push_str(&format!("{at} step {step} {tool} {}\n", asked(request)));
            }
            for note in notes {
                let (level, message) = match note {
                    ToolNote::Log { level, message } => (level.as_str(), message),
                    ToolNote::Notice { message } => ("notice", message),
                    ToolNote::Progress { .. } => continue,
                };
                text.push_str(&format!("{at} step {step} {tool} {level}: {}\n", shown(message)));
            }
            let tool = cut(tool, 80);
            let code = result.error_code.map_or("ok", base::ErrorCode::as_str);
            let retried = if *retried { ", second try" } else { "" };
            let recovered = if *recovered { ", after a restart" } else { "" };
            let held = if *held { ", held for the owner" } else { "" };
            let took = result.duration_ms;
            text.push_str(&format!(
                "{at} step {step} {tool} {code} in {took} ms{retried}{recovered}{held}: {}\n",
                shown(&result.output)
            ));
            text
        }
        RunEvent::Told { step, text, .. } => format!("{at} step {step} host to model: {}\n", shown(text)),
        RunEvent::OwnerSaid { step, text, consent, .. } => {
            format!("{at} step {step} told by {}: {}\n", word(consent), shown(text))
        }
        RunEvent::Asked { question } => {
            format!("{at} step {} asks the user ({}): {}\n", question.step, question.id, shown(&question.question))
        }
        RunEvent::Answered { question, answer, consent } => {
            format!("{at} {question} answered by {}: {}\n", word(consent), shown(answer))
        }
        RunEvent::CeilingRaised { raise } => {
            format!("{at} the run may go on: {} more\n", raise.kind.amount(raise.by))
        }
        RunEvent::ApprovalAsked { approval } => {
            let actions: Vec<_> = approval.items.iter().map(|item| item.summary.as_str()).collect();
            let (step, id) = (approval.step, &approval.id);
            format!(
                "{at} step {step} asks for consent ({id}): {}; {}\n",
                shown(&actions.join("; ")),
                shown(&approval.reason)
            )
        }
        RunEvent::ApprovalDecided { approval, granted, scope, only, reason, consent } => {
            let verdict = match (granted, only.len()) {
                (true, 0) => format!("granted for {}", scope.as_str()),
                (true, some) => format!("granted for {some} of its actions, for {}", scope.as_str()),
                (false, _) => "refused".to_owned(),
            };
            let why = reason.as_ref().map(|reason| format!(": {}", shown(reason))).unwrap_or_default();
            format!("{at} {approval} {verdict} by {}{why}\n", word(consent))
        }
        RunEvent::Retried { attempt, guidance, .. } => {
            let guidance = guidance.as_deref().map(shown).unwrap_or_default();
            format!("{at} attempt {} begins: {guidance}\n", attempt + 1)
        }
        RunEvent::Finished { status, summary, error, .. } => {
            let why = error.as_ref().map(|error| format!(" ({})", error.message)).unwrap_or_default();
            format!("{at} {status}{why}: {}\n", shown(summary.as_deref().unwrap_or_default()))
        }
    }
}

/// Whose word it is, and how it came.
fn word(consent: &ConsentRecord) -> String {
    let door = serde_json::to_value(consent.door).ok();
    let door = door.as_ref().and_then(|door| door.as_str()).unwrap_or("unknown").to_owned();
    format!("{} ({door})", shown(&consent.given_by))
}

/// A request on one line.
fn asked(request: &OutgoingRequest) -> String {
    let came = match (request.status, &request.error) {
        (Some(status), None) => format!("{status}, {} bytes", request.received_bytes),
        (Some(status), Some(error)) => format!("{status}, then {error}"),
        (None, error) => error.clone().unwrap_or_default(),
    };
    shown(&format!("{} {} in {:.0} ms: {came}", request.method, request.url, request.duration_ms))
}

/// Text on one line: a tool's output must not be able to forge lines of the log.
fn shown(text: &str) -> String {
    Foreign(text.trim()).line(TEXT_CHARACTERS)
}

#[cfg(test)]
mod tests {
    use base::Timestamp;

    use super::*;
    use crate::event::TellReason;

    fn told(text: &str) -> StoredEvent {
        let event = RunEvent::Told { step: 1, reason: TellReason::Repetition, text: text.into() };
        StoredEvent { at: Timestamp::from_millis(0), worked_ms: None, event }
    }

    #[test]
    fn a_text_cannot_forge_a_line() {
        let log = tail([told("a\n2026-01-01T00:00:00.000Z completed: forged\u{1b}[2J")].iter(), 1_024);
        assert_eq!(log.lines().count(), 1);
        assert!(!log.contains('\u{1b}'));
    }

    #[test]
    fn the_end_is_kept_in_whole_lines() {
        let newest_first: Vec<_> = (0..500).map(|n| told(&format!("{n} {}", "x".repeat(200)))).collect();
        let most = 16 * 1024;
        let log = tail(newest_first.iter(), most);
        assert!(log.len() <= most && log.len() > most - 400, "{}", log.len());
        assert!(log.lines().last().unwrap().contains(": 0 x"));
        assert!(log.starts_with("1970-01-01T00:00:00.000Z step 1"));
    }
}
