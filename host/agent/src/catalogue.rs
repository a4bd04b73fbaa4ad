//! The names a run may be granted: tools, and aliases that stand for several (SPEC TOOL-1).

use base::text::{did_you_mean, nearest};
use base::{Refusal, RefusalCode};

/// The tool that runs code.
pub const CODE: &str = "code";

/// The tool that gets pages and calls APIs.
pub const FETCH: &str = "fetch";

/// The shell that starts no process.
pub const BASH: &str = "bash";

/// Another common name of `bash`.
const SHELL: &str = "shell";

/// The tools of the bundled file component.
pub const FILE_TOOLS: [&str; 7] = ["read", "write", "append", "patch", "list", "glob", "grep"];

/// The alias for all file tools.
pub const FILESYSTEM: &str = "filesystem";

/// Resolves names to the exact tools granted: in the catalogue's order, each once.
///
/// # Errors
/// If a name is unknown; the error names the nearest one and all valid names.
pub fn resolve(names: &[String]) -> Result<Vec<String>, Refusal> {
    let mut granted = Vec::new();
    for name in names {
        let name = name.trim();
        match name {
            FILESYSTEM => granted.extend(FILE_TOOLS),
            CODE => granted.push(CODE),
            FETCH => granted.push(FETCH),
            BASH | SHELL => granted.push(BASH),
            _ => match FILE_TOOLS.iter().find(|tool| **tool == name) {
                Some(tool) => granted.push(tool),
                None => return Err(unknown(name)),
            },
        }
    }
    Ok(all().filter(|tool| granted.contains(tool)).map(str::to_owned).collect())
}

/// Every tool, in the order a model is told of them.
pub fn all() -> impl Iterator<Item = &'static str> {
    [CODE, FETCH, BASH].into_iter().chain(FILE_TOOLS)
}

/// Whether a name is taken by a bundled tool, an alias or a tool of the host, and not free for a skill's tool.
pub fn is_reserved(name: &str) -> bool {
    all().chain([FILESYSTEM, SHELL, "browser", "save_credential"]).any(|known| known == name)
        || motor::is_host_tool(name)
}

/// Whether a tool can reach the network if the run is granted domains.
pub fn reaches_out(tool: &str) -> bool {
    [CODE, FETCH, BASH].contains(&tool)
}

/// Whether any of the tools sees files, which lets `code` see them too (SPEC CODE-7).
pub fn sees_files(tools: &[String]) -> bool {
    tools.iter().any(|tool| tool == BASH || FILE_TOOLS.contains(&tool.as_str()))
}

/// Whether any of the tools writes files.
pub fn writes_files(tools: &[String]) -> bool {
    tools.iter().any(|tool| [BASH, "write", "append", "patch"].contains(&tool.as_str()))
}

fn unknown(name: &str) -> Refusal {
    let known: Vec<&str> = all().chain([FILESYSTEM, SHELL]).collect();
    let shown: String = name.chars().take(60).collect();
    let meant = did_you_mean(nearest(name, known.iter().map(|tool| (*tool, tool))));
    let reason = format!("unknown tool `{}`{meant}", shown.escape_debug());
    Refusal::new(RefusalCode::UnknownTool, reason).with_remedy(format!("there are: {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str]) -> Result<Vec<String>, String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        resolve(&names).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn aliases_stand_for_their_tools_and_nothing_else() {
        assert_eq!(check(&["filesystem"]).unwrap(), FILE_TOOLS);
        assert_eq!(check(&["read", "code", "read"]).unwrap(), ["code", "read"]);
        assert_eq!(check(&["shell", "bash", "fetch"]).unwrap(), ["fetch", "bash"]);
        assert_eq!(check(&[]).unwrap(), [] as [&str; 0]);
    }

    #[test]
    fn an_unknown_name_says_what_was_meant() {
        assert_eq!(check(&["filesytem"]).unwrap_err(), "unknown tool `filesytem`; did you mean `filesystem`?");
        assert_eq!(check(&["zzz"]).unwrap_err(), "unknown tool `zzz`");
        assert!(check(&["a\nb"]).is_err());
    }
}
