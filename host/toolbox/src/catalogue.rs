//! The bundled tools, a row each, and the names a run may be granted (SPEC TOOL-1).

use std::time::Duration;

use base::text::{Foreign, did_you_mean, nearest};
use base::{Refusal, RefusalCode};
use runtime::{Language, Limits};
use serde_json::Value;

use crate::{SAVE_CREDENTIAL, ToolsConfig};

/// The tool that runs code.
pub const CODE: &str = "code";
/// The shell that starts no process.
pub const BASH: &str = "bash";
/// The commands of the shell that send requests.
pub const SENDING_COMMANDS: [&str; 2] = ["curl", "git"];
/// The alias for all file tools.
pub const FILESYSTEM: &str = "filesystem";

/// Names that the host uses or will use for itself.
const HOST_NAMES: [&str; 2] = ["browser", SAVE_CREDENTIAL];

/// Time limit of a tool without one of its own in the configuration (SPEC TOOL-3).
const TIMEOUT: Duration = Duration::from_secs(10);

/// Everything the host knows about a bundled tool, besides its component's own description of it.
pub(crate) struct BundledTool {
    /// The name a model calls it by, which is also its name in its component.
    pub name: &'static str,
    /// Other names that grant it; several tools may share one.
    pub aliases: &'static [&'static str],
    /// Its component in [`bundled::components`]. `code-js` runs programs and offers no tools.
    pub component: &'static str,
    /// Its use of the files of the workspace.
    pub files: FileUse,
    /// Whether the shell can do all of its work, so that a small model is not offered both.
    pub in_shell: bool,
    /// Whether it can reach the network if the run is granted domains.
    pub network: bool,
    /// Whether a run can narrow it to some of its commands (SPEC TOOL-2).
    pub commands: bool,
    /// Whether a call that reads a page is reviewed before it is made, so that one consent covers several pages. The
    /// gate asks about all other requests.
    pub pages: bool,
    /// Whether a call with these arguments only reads, so that others may be made beside it.
    pub only_reads: fn(&Value) -> bool,
    /// Its time limit in the configuration, in milliseconds; `None`: 10 s, or `limits.deadline_ms` if that is less.
    pub timeout_ms: Option<fn(&ToolsConfig) -> u64>,
}

/// The use of the workspace by a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileUse {
    /// No files, or only those that other tools of the run give access to.
    None,
    /// The host saves each of its outputs as a file.
    Saved,
    /// The tool reads files.
    Read,
    /// The tool reads and writes files.
    Write,
}

/// The rest of a row: a tool without files, network and settings.
const PLAIN: BundledTool = BundledTool {
    name: "",
    aliases: &[],
    component: "",
    files: FileUse::None,
    in_shell: false,
    network: false,
    commands: false,
    pages: false,
    only_reads: |_| false,
    timeout_ms: None,
};

const fn file_tool(name: &'static str, files: FileUse) -> BundledTool {
    let only_reads: fn(&Value) -> bool = if matches!(files, FileUse::Read) { |_| true } else { PLAIN.only_reads };
    BundledTool { name, aliases: &[FILESYSTEM], component: "files", files, only_reads, ..PLAIN }
}

/// Whether a call of `fetch` changes neither the other side nor the workspace.
fn fetches_only(arguments: &Value) -> bool {
    let method = arguments.get("method").map_or(Some("GET"), Value::as_str).unwrap_or_default();
    ["GET", "HEAD"].iter().any(|safe| method.eq_ignore_ascii_case(safe))
        && arguments.get("save_to").is_none_or(Value::is_null)
}

/// The bundled tools, in the order a model is told of them.
static TOOLS: [BundledTool; 10] = [
    BundledTool { name: CODE, component: "code-js", network: true, ..PLAIN },
    BundledTool {
        name: "fetch",
        component: "fetch",
        files: FileUse::Saved,
        network: true,
        pages: true,
        only_reads: fetches_only,
        timeout_ms: Some(|config| config.fetch_timeout_ms),
        ..PLAIN
    },
    BundledTool {
        name: BASH,
        aliases: &["shell"],
        component: "bash",
        files: FileUse::Write,
        network: true,
        commands: true,
        timeout_ms: Some(|config| config.bash_timeout_ms),
        ..PLAIN
    },
    file_tool("read", FileUse::Read),
    file_tool("write", FileUse::Write),
    BundledTool { in_shell: true, ..file_tool("append", FileUse::Write) },
    file_tool("patch", FileUse::Write),
    BundledTool { in_shell: true, ..file_tool("list", FileUse::Read) },
    BundledTool { in_shell: true, ..file_tool("glob", FileUse::Read) },
    // Unlike the commands of the shell, it searches files of any size.
    file_tool("grep", FileUse::Read),
];

/// The engines of programs: by language, and by whether they are for programs with granted files or domains.
pub(crate) const ENGINES: [((Language, bool), &str); 4] = [
    ((Language::JavaScript, false), "code-js"),
    ((Language::JavaScript, true), "code-js-connected"),
    ((Language::Python, false), "code-python"),
    ((Language::Python, true), "code-python-connected"),
];

/// The component of an engine.
pub(crate) fn engine(key: (Language, bool)) -> &'static str {
    ENGINES.iter().find(|(known, _)| *known == key).map_or("code", |(_, name)| *name)
}

/// The bundled reflector of the cortex. It offers no tools.
pub const REFLECTOR: &str = "reflector";

/// The names of the bundled components, each once. A build without guests lacks their bytes.
pub fn components() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<&str> =
        TOOLS.iter().map(|tool| tool.component).chain([engine((Language::JavaScript, true)), REFLECTOR]).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter()
}

/// The bundled tool with this name.
pub(crate) fn find(name: &str) -> Option<&'static BundledTool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Resolves names to the exact tools granted: in the catalogue's order, each once, and [`SAVE_CREDENTIAL`] after them.
///
/// # Errors
/// If a name is unknown; the error names the nearest one and all valid names.
pub fn resolve(names: &[String]) -> Result<Vec<String>, Refusal> {
    let grants = |tool: &BundledTool, name: &str| tool.name == name || tool.aliases.contains(&name);
    let is_known = |name: &str| name == SAVE_CREDENTIAL || TOOLS.iter().any(|tool| grants(tool, name));
    if let Some(name) = names.iter().find(|name| !is_known(name.trim())) {
        return Err(unknown(name.trim(), &[]));
    }
    let granted = TOOLS.iter().filter(|tool| names.iter().any(|name| grants(tool, name.trim())));
    let saves = names.iter().any(|name| name.trim() == SAVE_CREDENTIAL).then_some(SAVE_CREDENTIAL);
    Ok(granted.map(|tool| tool.name).chain(saves).map(str::to_owned).collect())
}

/// The tools without those whose work the shell among them can do; tools in `named` are kept.
///
/// Without the shell all are kept, because none replaces another: `append` takes files of any size and encoding, `list` shows
/// sizes and directories, and `glob` finds files in a directory too large to list.
#[must_use]
pub fn beside_shell(mut tools: Vec<String>, named: &[String]) -> Vec<String> {
    if tools.iter().any(|tool| tool == BASH) {
        let is_named = |tool: &str| named.iter().any(|name| name.trim() == tool);
        tools.retain(|tool| is_named(tool) || find(tool).is_none_or(|known| !known.in_shell));
    }
    tools
}

/// Whether a name grants bundled tools.
#[must_use]
pub fn grants_any(name: &str) -> bool {
    name == SAVE_CREDENTIAL || known().contains(&name)
}

/// The exact names of all bundled tools, in the catalogue's order.
#[must_use]
pub fn names() -> Vec<String> {
    TOOLS.iter().map(|tool| tool.name.to_owned()).collect()
}

/// Whether a name is taken by a bundled tool, an alias or a tool of the host, and not free for a skill's tool.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    known().contains(&name) || HOST_NAMES.contains(&name) || motor::is_host_tool(name)
}

/// Whether a tool can reach the network if the run is granted domains.
#[must_use]
pub fn reaches_out(tool: &str) -> bool {
    find(tool).is_some_and(|tool| tool.network)
}

/// The first of the tools whose output is saved as files.
pub fn saves_files(tools: &[String]) -> Option<&str> {
    tools.iter().map(String::as_str).find(|tool| uses(tool, &[FileUse::Saved]))
}

/// Whether any of the tools sees files, which lets `code` see them too (SPEC CODE-7).
#[must_use]
pub fn sees_files(tools: &[String]) -> bool {
    tools.iter().any(|tool| uses(tool, &[FileUse::Read, FileUse::Write]))
}

/// Whether a call of a bundled tool with these arguments only reads.
#[must_use]
pub fn only_reads(tool: &str, arguments: &Value) -> bool {
    find(tool).is_some_and(|tool| (tool.only_reads)(arguments))
}

/// Whether any of the tools writes files.
#[must_use]
pub fn writes_files(tools: &[String]) -> bool {
    tools.iter().any(|tool| uses(tool, &[FileUse::Write]))
}

/// Wall-clock time limit of one call of a tool, bundled or of a skill.
pub(crate) fn timeout(name: &str, config: &ToolsConfig, limits: &Limits) -> Duration {
    match find(name).and_then(|tool| tool.timeout_ms) {
        Some(timeout_ms) => Duration::from_millis(timeout_ms(config)),
        None => default_timeout(limits),
    }
}

/// Wall-clock time limit of one call of a tool without a limit of its own in the configuration.
pub(crate) fn default_timeout(limits: &Limits) -> Duration {
    limits.deadline().min(TIMEOUT)
}

fn uses(tool: &str, uses: &[FileUse]) -> bool {
    find(tool).is_some_and(|tool| uses.contains(&tool.files))
}

/// Every name that grants a tool: first the tools, then the aliases.
fn known() -> Vec<&'static str> {
    let mut names: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
    for alias in TOOLS.iter().rev().flat_map(|tool| tool.aliases) {
        if !names.contains(alias) {
            names.push(alias);
        }
    }
    names
}

/// The refusal of a name that grants nothing. `others` are the tools of the home.
#[must_use]
pub fn unknown(name: &str, others: &[String]) -> Refusal {
    let mut all = known();
    all.extend(others.iter().map(String::as_str));
    let meant = did_you_mean(nearest(name, all.iter().map(|tool| (*tool, tool))));
    let reason = format!("unknown tool `{}`{meant}", Foreign(name).escaped(60));
    Refusal::new(RefusalCode::UnknownTool, reason).with_remedy(format!("there are: {}", all.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn check(names: &[&str]) -> Result<Vec<String>, String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        resolve(&names).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn aliases_stand_for_their_tools_and_nothing_else() {
        let files = ["read", "write", "append", "patch", "list", "glob", "grep"];
        assert_eq!(check(&["filesystem"]).unwrap(), files);
        assert_eq!(check(&["read", "code", "read"]).unwrap(), ["code", "read"]);
        assert_eq!(check(&["shell", "bash", "fetch"]).unwrap(), ["fetch", "bash"]);
        assert_eq!(check(&[]).unwrap(), [] as [&str; 0]);
    }

    #[test]
    fn the_shell_replaces_file_tools_that_are_not_named() {
        for (named, expected) in [
            ("bash filesystem", "bash read write patch grep"),
            ("shell filesystem list", "bash read write patch list grep"),
            ("bash append glob", "bash append glob"),
            ("code bash fetch", "code fetch bash"),
            // The twin without the shell: all of them.
            ("code filesystem", "code read write append patch list glob grep"),
        ] {
            let named: Vec<String> = named.split(' ').map(str::to_owned).collect();
            let tools = resolve(&named).unwrap();
            assert_eq!(beside_shell(tools, &named).join(" "), expected, "{named:?}");
        }
    }

    #[test]
    fn calls_that_only_read_are_known_by_their_arguments() {
        let url = |more: &str| format!(r#"{{"url": "https://example.com"{more}}}"#);
        for (tool, arguments, expected) in [
            ("read", r#"{"path": "a"}"#.to_owned(), true),
            ("grep", r#"{"pattern": "a"}"#.to_owned(), true),
            ("write", r#"{"path": "a", "content": ""}"#.to_owned(), false),
            ("bash", r#"{"command": "cat a"}"#.to_owned(), false),
            ("code", r#"{"code": "1"}"#.to_owned(), false),
            ("fetch", url(""), true),
            ("fetch", url(r#", "method": "head""#), true),
            ("fetch", url(r#", "method": "GET", "save_to": null"#), true),
            ("fetch", url(r#", "method": "POST""#), false),
            ("fetch", url(r#", "method": ["POST"]"#), false),
            ("fetch", url(r#", "method": null"#), false),
            ("fetch", url(r#", "save_to": "a.png""#), false),
        ] {
            let arguments = serde_json::from_str(&arguments).unwrap();
            assert_eq!((find(tool).unwrap().only_reads)(&arguments), expected, "{tool} {arguments}");
        }
    }

    #[test]
    fn an_unknown_name_says_what_was_meant() {
        assert_eq!(check(&["filesytem"]).unwrap_err(), "unknown tool `filesytem`; did you mean `filesystem`?");
        assert_eq!(check(&["zzz"]).unwrap_err(), "unknown tool `zzz`");
        assert!(check(&["a\nb"]).is_err());
    }

    #[test]
    fn each_component_is_there_and_has_a_row() {
        let built: BTreeSet<&str> = bundled::components().map(|component| component.name).collect();
        assert_eq!(components().collect::<BTreeSet<_>>(), built);
    }
}
