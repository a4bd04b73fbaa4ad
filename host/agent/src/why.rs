//! Where a line, a file, a request or an answer of a run came from: a walk back through its record.
//!
//! It reads stored facts (the trace, the touches of directories, the artifacts) and records nothing. A model's reasons
//! are not in a record, and a program's output cannot be followed into a file: where the record ends, the reply says so.

use std::path::Path;

use base::text::{counted, cut};
use base::{ContentHash, Provenance, Refusal, RefusalCode, RunId};
use grants::{Admission, Grant};
use layer::After;
use motor::{RunTrace, StepTrace, ToolCallTrace};
use network::Target;
use serde_json::Value;
use store::{Links, blocking};
use toolbox::catalogue;

use crate::Runs;
use crate::api::why::{WhyCall, WhyComponent, WhyPermission, WhyQuery, WhyReply, WhySource};
use crate::changes::{read, unreadable};

/// Characters of arguments, replies and lines that are shown.
const SHOWN: usize = 300;
/// The largest file of which a line is looked up, in bytes.
const MAX_FILE: u64 = 16 << 20;
/// Sources that are listed.
const MAX_SOURCES: usize = 100;

/// A file of a run, as far as it is known.
#[derive(Debug, Default)]
struct KnownFile {
    content: Option<Vec<u8>>,
    /// The steps that touched it, where the host records them.
    steps: Option<Vec<u32>>,
}

impl Runs {
    /// Where a part of a run came from.
    ///
    /// # Errors
    /// `not_found` if the run has no such file, line or request; `invalid_request` if more than one part is named.
    pub async fn why(&self, id: &RunId, query: WhyQuery) -> Result<WhyReply, Refusal> {
        let (trace, grant) = (self.trace(id)?, self.record(id)?.grant);
        match query {
            WhyQuery { file: Some(file), line, request: None } => {
                let path = workspace_path(&file, &grant)?;
                let known = self.known_file(id, &trace, &path, !grant.directories.is_empty()).await?;
                of_file(&trace, &grant, &path, line, &known)
            }
            WhyQuery { file: None, line: None, request: Some(number) } => of_request(&trace, &grant, number),
            WhyQuery { file: None, line: None, request: None } => of_answer(&trace, &grant),
            _ => {
                let reason = "a question is about one file, with or without a line, or one request, or the answer";
                Err(Refusal::new(RefusalCode::InvalidRequest, reason))
            }
        }
    }

    async fn known_file(
        &self,
        id: &RunId,
        trace: &RunTrace,
        path: &str,
        on_directories: bool,
    ) -> Result<KnownFile, Refusal> {
        if trace.artifacts.iter().any(|artifact| artifact.path == path && artifact.bytes <= MAX_FILE) {
            return Ok(KnownFile { content: self.artifact(id, path).await.ok(), steps: None });
        }
        if !on_directories {
            return Ok(KnownFile::default());
        }
        let home = self.environment.home.run(id);
        let scrubber = self.environment.access.scrubber(id).await?;
        let _turn = self.environment.landing.lock().await;
        let path = path.to_owned();
        blocking(move || {
            let layer = crate::landing::settled(&home)?;
            let changed = read(&layer, &home)?.into_iter().find(|change| change.at == path);
            let Some(changed) = changed else { return Ok(KnownFile::default()) };
            let steps = Some(changed.touches.iter().map(|touch| touch.step).collect());
            let content = match &changed.after {
                After::File { content } => {
                    let content = store::read_regular(content, Links::Refused, MAX_FILE);
                    Some(scrubber.bytes(content.map_err(|error| unreadable(&error))?))
                }
                _ => None,
            };
            Ok(KnownFile { content, steps })
        })
        .await
    }
}

/// The path below `/workspace` of a file as a person names it.
fn workspace_path(file: &str, grant: &Grant) -> Result<String, Refusal> {
    let named = file.trim_start_matches("./");
    let Some(absolute) = named.strip_prefix('/') else { return Ok(named.to_owned()) };
    if let Some(path) = absolute.strip_prefix("workspace/") {
        return Ok(path.to_owned());
    }
    let inside = grant.directories.iter().find_map(|directory| {
        let rest = Path::new(file).strip_prefix(&directory.path).ok()?.to_str()?;
        Some(if directory.prefix.is_empty() { rest.to_owned() } else { format!("{}/{rest}", directory.prefix) })
    });
    inside.ok_or_else(|| {
        Refusal::new(RefusalCode::NotFound, format!("`{file}` is in no directory that the run works on"))
            .with_remedy("name a path below `/workspace`, or one in a directory of `motor diff RUN`")
    })
}

/// The calls of a run with their steps.
fn calls(trace: &RunTrace) -> impl DoubleEndedIterator<Item = (&StepTrace, &ToolCallTrace)> {
    trace.steps.iter().flat_map(|step| step.tool_calls.iter().map(move |call| (step, call)))
}

/// All texts in a call's arguments.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(members) => members.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// Tools that write the one file that they name.
const FILE_TOOLS: [&str; 3] = ["write", "append", "patch"];

/// Whether a call was made and may have written the file: it names the file, or its step is known to have touched it.
fn may_write(call: &ToolCallTrace, path: &str, steps: Option<&[u32]>, step: u32) -> bool {
    let Some(result) = &call.result else { return false };
    if (call.component.is_none() && !result.ok) || catalogue::only_reads(&call.tool, &call.args) {
        return false;
    }
    if steps.is_some_and(|steps| !steps.contains(&step)) {
        return false;
    }
    match call.args.get("path").and_then(Value::as_str).filter(|_| FILE_TOOLS.contains(&call.tool.as_str())) {
        Some(named) => below_workspace(named) == path,
        None => steps.is_some() || texts(&call.args).iter().any(|text| names_path(text, path)),
    }
}

/// A path as tools name it, without the workspace before it.
fn below_workspace(named: &str) -> &str {
    named.trim_start_matches("/workspace").trim_start_matches(['.', '/'])
}

/// Whether a text names the path, and not one that only begins or ends with it.
fn names_path(text: &str, path: &str) -> bool {
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(path)) {
        let (start, end) = (from + at, from + at + path.len());
        let goes_on = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-');
        let before = text.get(..start).and_then(|text| text.chars().next_back());
        let after = text.get(end..).and_then(|text| text.chars().next());
        if !before.is_some_and(goes_on) && !after.is_some_and(goes_on) {
            return true;
        }
        from = end;
    }
    false
}

fn of_file(
    trace: &RunTrace,
    grant: &Grant,
    path: &str,
    line: Option<usize>,
    known: &KnownFile,
) -> Result<WhyReply, Refusal> {
    let steps = known.steps.as_deref();
    let because = if steps.is_some() {
        "its step is recorded as one that touched the file"
    } else {
        "its arguments name the file"
    };
    let writers: Vec<_> =
        calls(trace).rev().filter(|(step, call)| may_write(call, path, steps, step.iteration)).collect();
    let is_listed = trace.artifacts.iter().any(|artifact| artifact.path == path);
    if writers.is_empty() && !is_listed && known.steps.is_none() {
        let reason = format!("run `{}` has no file `{path}` that it wrote", trace.run_id);
        return Err(Refusal::new(RefusalCode::NotFound, reason)
            .with_remedy("`motor task status RUN` lists its files, `motor diff RUN` its edits"));
    }
    let mut missing = Vec::new();
    if writers.is_empty() {
        missing.push(format!("which call wrote `{path}`: no call names it"));
    }
    let Some(number) = line else {
        let subject = format!("the file `{path}`");
        let found = writers.iter().map(|(step, call)| shown(trace, grant, step, call, because.to_owned())).collect();
        return Ok(reply(trace, subject, found, missing));
    };
    let subject = format!("line {number} of `{path}`");
    let Some(content) = &known.content else {
        missing.push("the text of the line: the host keeps no copy of the file until the run is over".to_owned());
        let found = writers.iter().map(|(step, call)| shown(trace, grant, step, call, because.to_owned())).collect();
        return Ok(reply(trace, subject, found, missing));
    };
    let content = String::from_utf8_lossy(content);
    let text = number.checked_sub(1).and_then(|index| content.lines().nth(index)).ok_or_else(|| {
        Refusal::new(RefusalCode::NotFound, format!("`{path}` has {}", counted(content.lines().count() as u64, "line")))
    })?;
    let (found, because) = match origin(&writers, text) {
        Some((writer, because)) => (vec![writer], because),
        None => {
            missing.push("which call wrote this line: the arguments of none hold it".to_owned());
            (writers.iter().copied().take(1).collect(), "it was the last call that may have written the file")
        }
    };
    let found = found.iter().map(|(step, call)| shown(trace, grant, step, call, because.to_owned())).collect();
    Ok(WhyReply { line: Some(cut(text, SHOWN)), ..reply(trace, subject, found, missing) })
}

/// The last call whose arguments hold the line, or a part of it that was put in.
fn origin<'a>(
    writers: &[(&'a StepTrace, &'a ToolCallTrace)],
    line: &str,
) -> Option<((&'a StepTrace, &'a ToolCallTrace), &'static str)> {
    let line = line.trim();
    if line.is_empty() {
        return None;
    }
    let holds =
        |call: &ToolCallTrace| texts(&call.args).iter().any(|text| text.lines().any(|written| written.trim() == line));
    let puts_in = |call: &ToolCallTrace| {
        let put = call.args.get("replace").and_then(Value::as_str).map(str::trim).unwrap_or_default();
        call.tool == "patch" && !put.is_empty() && !put.contains('\n') && line.contains(put)
    };
    writers.iter().find_map(|writer| match writer.1 {
        call if holds(call) => Some((*writer, "its arguments hold the line")),
        call if puts_in(call) => Some((*writer, "it put a part of the line in")),
        _ => None,
    })
}

fn of_request(trace: &RunTrace, grant: &Grant, number: usize) -> Result<WhyReply, Refusal> {
    let mut requests =
        calls(trace).flat_map(|(step, call)| call.requests.iter().map(move |request| (step, call, request)));
    let found = number.checked_sub(1).and_then(|index| requests.nth(index));
    let Some((step, call, request)) = found else {
        let all = calls(trace).map(|(_, call)| call.requests.len()).sum::<usize>();
        let reason = format!("run `{}` made {all} requests: there is no number {number}", trace.run_id);
        return Err(Refusal::new(RefusalCode::NotFound, reason)
            .with_remedy("`motor task status RUN --full` shows them in their order"));
    };
    let subject = format!("request {number}: {} {}", request.method, request.url);
    let mut caller = shown(trace, grant, step, call, "it made the request".to_owned());
    for asked in trace.approvals.iter().filter(|_| request.consented) {
        let item = asked.approval.items.iter().find(|item| Some(item.action_hash) == request.hash);
        if let Some(item) = item.filter(|item| asked.allows(item.action_hash)) {
            let what = format!("you allowed exactly this request: {}", item.summary);
            caller.allowed.push(WhyPermission { what, consent: asked.consent.clone() });
        }
    }
    let target = Target::parse(&request.url).ok();
    let pattern = grant.domains.iter().find(|pattern| target.as_ref().is_some_and(|target| pattern.covers(target)));
    let mut missing = vec!["its body, and the values of its query".to_owned()];
    match (&request.rule, pattern) {
        (Some(rule), _) => {
            let what = format!("nothing: the gate refused it ({rule})");
            caller.allowed = vec![WhyPermission { what, consent: None }];
        }
        (None, Some(pattern)) => {
            let what = format!("the run was granted the domain `{pattern}`");
            caller.allowed.push(WhyPermission { what, consent: None });
        }
        (None, None) if !request.consented => {
            missing
                .push(format!("which rule let the run reach `{}`: it is not a grant of the run alone", request.host));
        }
        (None, None) => {}
    }
    Ok(reply(trace, subject, vec![caller], missing))
}

fn of_answer(trace: &RunTrace, grant: &Grant) -> Result<WhyReply, Refusal> {
    if trace.summary.is_none() {
        let reason = format!("run `{}` is {} and has no answer", trace.run_id, trace.status);
        return Err(Refusal::new(RefusalCode::NotFound, reason).with_remedy("wait for its end, or ask about a file"));
    }
    let first = trace.attempts.last().map_or(1, |attempt| attempt.first_step);
    let found = calls(trace).rev().filter(|(step, call)| step.iteration >= first && call.result.is_some());
    let because = "its result was in the conversation, whole or as a record of it";
    let found = found.map(|(step, call)| shown(trace, grant, step, call, because.to_owned())).collect();
    let mut missing = vec!["which of these results a sentence rests on: a model does not say".to_owned()];
    if first > 1 {
        missing.push("what files of earlier attempts told it, beyond the reads that are listed".to_owned());
    }
    Ok(reply(trace, "the answer".to_owned(), found, missing))
}

/// `found` is the last call first; sources are those before it.
fn reply(trace: &RunTrace, subject: String, found: Vec<WhyCall>, mut missing: Vec<String>) -> WhyReply {
    if found.iter().any(|call| call.component.as_ref().is_some_and(|component| component.name.is_none())) {
        missing.push("the name and version of a component that does not come with this program".to_owned());
    }
    let until = found.first().filter(|_| subject != "the answer").map(|call| (call.step, call.call_id.clone()));
    let mut sources = Vec::new();
    for (step, call) in calls(trace) {
        if until
            .as_ref()
            .is_some_and(|(last, id)| step.iteration > *last || (step.iteration == *last && call.call_id == *id))
        {
            break;
        }
        sources.extend(sources_of(step, call));
    }
    sources.drain(..sources.len().saturating_sub(MAX_SOURCES));
    WhyReply {
        run_id: trace.run_id.clone(),
        subject,
        line: None,
        calls: found,
        read_before: sources,
        not_recorded: missing,
    }
}

/// The pages, files and answers that a call brought into the conversation.
fn sources_of(step: &StepTrace, call: &ToolCallTrace) -> Vec<WhySource> {
    let step = step.iteration;
    let pages = call.requests.iter().filter_map(|request| {
        let what = format!("{} {} ({})", request.method, request.url, request.status?);
        Some(WhySource { step, what, is_untrusted: true })
    });
    let mut sources: Vec<_> = pages.collect();
    let Some(result) = call.result.as_ref().filter(|result| result.ok) else { return sources };
    let is_untrusted = result.provenance == Provenance::Web;
    if result.provenance == Provenance::User {
        sources.push(WhySource {
            step,
            what: format!("your word: {}", cut(&result.output, SHOWN)),
            is_untrusted: false,
        });
    } else if sources.is_empty() && (catalogue::only_reads(&call.tool, &call.args) || is_untrusted) {
        let what = format!("{} {}", call.tool, cut(&call.args.to_string(), SHOWN));
        sources.push(WhySource { step, what, is_untrusted });
    }
    sources
}

fn shown(trace: &RunTrace, grant: &Grant, step: &StepTrace, call: &ToolCallTrace, because: String) -> WhyCall {
    let outcome = match &call.result {
        Some(result) if result.ok => "ok".to_owned(),
        Some(result) => result.error_code.map_or("failed", base::ErrorCode::as_str).to_owned(),
        None => "no result".to_owned(),
    };
    WhyCall {
        step: step.iteration,
        call_id: call.call_id.clone(),
        tool: call.tool.clone(),
        arguments: cut(&call.args.to_string(), SHOWN),
        outcome,
        because,
        component: call.component.map(|hash| WhyComponent { hash, name: bundled_as(hash) }),
        model: step.llm_model.clone(),
        reply: cut(&step.text, SHOWN),
        allowed: allowed(trace, grant, call),
    }
}

/// The name and version of a component with these bytes, if it comes with this program.
fn bundled_as(hash: ContentHash) -> Option<String> {
    let found = bundled::components().find(|component| component.hash == hash.as_bytes());
    found.map(|component| format!("{} of motor {}", component.name, env!("CARGO_PKG_VERSION")))
}

fn allowed(trace: &RunTrace, grant: &Grant, call: &ToolCallTrace) -> Vec<WhyPermission> {
    let mut allowed = Vec::new();
    if trace.tools.contains(&call.tool) {
        let what = match &grant.agreement {
            Some(_) => format!("the plan that you agreed to has the tool `{}`", call.tool),
            None => format!("the run was granted the tool `{}`", call.tool),
        };
        allowed.push(WhyPermission { what, consent: None });
    }
    let is_bundled = catalogue::names().contains(&call.tool);
    for skill in grant.skill.iter().chain(&grant.tools).filter(|_| !is_bundled) {
        let standing = match skill.admission {
            Admission::Approved => "a version that you had approved",
            _ => "a version that you had not approved",
        };
        let what = format!("the skill `{}` was in the run, {standing} ({})", skill.name, skill.hash.short());
        allowed.push(WhyPermission { what, consent: None });
    }
    for asked in &trace.approvals {
        for item in asked.approval.items.iter().filter(|item| item.call_id == call.call_id) {
            if asked.allows(item.action_hash) {
                let scope = asked.scope.unwrap_or_default().as_str();
                let what = format!("you allowed it ({scope}, {}): {}", asked.approval.id, item.summary);
                allowed.push(WhyPermission { what, consent: asked.consent.clone() });
            }
        }
    }
    allowed
}

#[cfg(test)]
mod tests;
