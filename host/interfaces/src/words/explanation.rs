//! A run's possible access, line by line (SPEC RUN-13).

use agent::{AskWhen, ExplainedCredential, Explanation, FileAccess};
use network::TaintedWrite;

use crate::output::text;

/// The rows of an explanation: labels, and lines that are fit to be shown. Rows of one group have the same label.
pub(crate) fn rows(explanation: &Explanation) -> Vec<(&'static str, String)> {
    let mut page = Rows::default();
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
        let asks = match (network.asks && refused.is_empty(), network.writes.is_empty()) {
            (false, _) => "",
            (true, true) => ": asks you about each request",
            // A granted write passes without a question.
            (true, false) => ": asks you about each request but those below",
        };
        page.line("domains", &format!("{domain}{refused}{asks}"));
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
    for line in asking(explanation) {
        page.line("asks", &line);
    }
    let access = match files.access {
        FileAccess::None => "none".to_owned(),
        FileAccess::Read => format!("/workspace, reading; {}", room(explanation)),
        FileAccess::ReadWrite => format!("/workspace, reading and writing; {}", room(explanation)),
    };
    page.line("files", &access);
    for directory in &files.directories {
        let (path, seen_as) = (text::one_line(&directory.path), text::one_line(&directory.seen_as));
        let access = if directory.read_only { "read only" } else { "changes are kept aside until you land them" };
        page.line("files", &format!("{path} as {seen_as}: {access}"));
    }
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
    if let Some(cap) = explanation.usd_cap {
        page.line("money", &format!("{cap} on models at most"));
    }
    page.0
}

/// How writes are treated after reading from the web (SPEC TAINT-1).
fn writing(explanation: &Explanation) -> String {
    if explanation.network.staged {
        return "nothing: every request that writes is held, and sent only if the owner sends it later".to_owned();
    }
    if explanation.network.only_planned {
        let which = if explanation.network.writes.is_empty() { "nothing" } else { "only the requests listed here" };
        return format!("{which}; every other request that writes is refused without a question");
    }
    let then = match explanation.network.tainted_write {
        TaintedWrite::Allow => "allowed",
        TaintedWrite::Ask => "refused until the owner allows it",
        TaintedWrite::Deny => "refused",
    };
    if explanation.network.asks && explanation.network.tainted_write != TaintedWrite::Deny {
        return "asks you about each request, also after it has read from the web".to_owned();
    }
    format!("after it has read from the web: {then}")
}

/// The tools, commands and credentials that the owner is asked about, a line for each kind and time.
fn asking(explanation: &Explanation) -> Vec<String> {
    let of_tools = explanation.tools.iter().filter_map(|tool| Some((tool.asks?, text::quoted(&tool.name))));
    let of_commands = explanation.asking_commands.iter().map(|command| (command.asks, command.name.clone()));
    let of_credentials = explanation.credentials.iter().filter_map(|one| Some((one.asks?, one.name.to_string())));
    let lines = |subjects: Vec<(AskWhen, String)>, kind: &'static str| {
        let times = [
            (AskWhen::EachCall, "before each call"),
            (AskWhen::EachRequest, "about each request"),
            (AskWhen::AfterWeb, "once it has read from the web"),
        ];
        times.into_iter().filter_map(move |(when, words)| {
            let names: Vec<_> =
                subjects.iter().filter(|(asks, _)| *asks == when).map(|(_, name)| name.as_str()).collect();
            (!names.is_empty()).then(|| format!("{kind}{}: {words}", names.join(", ")))
        })
    };
    let (tools, commands) = (lines(of_tools.collect(), ""), lines(of_commands.collect(), "bash with "));
    tools.chain(commands).chain(lines(of_credentials.collect(), "the credential ")).collect()
}

fn credential_line(credential: &ExplainedCredential) -> String {
    let ExplainedCredential { name, source, domains, raw, .. } = credential;
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

#[derive(Default)]
struct Rows(Vec<(&'static str, String)>);

impl Rows {
    fn line(&mut self, label: &'static str, line: &str) {
        self.row(label, &text::one_line(line));
    }

    /// A line of several columns, which is fit to be shown.
    fn row(&mut self, label: &'static str, line: &str) {
        self.0.push((label, line.to_owned()));
    }
}
