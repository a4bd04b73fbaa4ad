//! The configuration of MCP clients: an entry that starts `motor mcp`.
//!
//! A file of the client is changed only if it can be read as a whole, and other entries in it stay.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base::{Refusal, RefusalCode};
use serde_json::{Map, Value, json};

/// Name of the server in every client.
const SERVER: &str = "motor";

/// A client whose configuration is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// Claude Code, configured by JSON.
    Claude,
    /// The editor Cursor, configured by JSON.
    Cursor,
    /// Visual Studio Code, configured by JSON.
    VsCode,
    /// The Codex command line, configured by TOML.
    Codex,
    /// The agent goose, configured by YAML.
    Goose,
}

/// The command that a client starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Absolute path of this program.
    pub program: String,
    /// Arguments of this program.
    pub arguments: Vec<String>,
}

/// The effect of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installed {
    /// The file was written.
    Written,
    /// The file had this very entry.
    Unchanged,
}

impl Client {
    /// The user's configuration file, if the client has one under these environment variables.
    #[must_use]
    pub fn user_file(self, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
        let home = || env("HOME").map(PathBuf::from);
        let config = || env("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| home().map(|home| home.join(".config")));
        match self {
            Self::Claude => Some(home()?.join(".claude.json")),
            Self::Cursor => Some(home()?.join(".cursor/mcp.json")),
            Self::VsCode => Some(config()?.join("Code/User/mcp.json")),
            Self::Codex => {
                let directory = env("CODEX_HOME").map(PathBuf::from).or_else(|| Some(home()?.join(".codex")));
                Some(directory?.join("config.toml"))
            }
            Self::Goose => Some(config()?.join("goose/config.yaml")),
        }
    }

    /// The configuration file of a project, if the client reads one.
    #[must_use]
    pub fn project_file(self, project: &Path) -> Option<PathBuf> {
        match self {
            Self::Claude => Some(project.join(".mcp.json")),
            Self::Cursor => Some(project.join(".cursor/mcp.json")),
            Self::VsCode => Some(project.join(".vscode/mcp.json")),
            Self::Codex => Some(project.join(".codex/config.toml")),
            Self::Goose => None,
        }
    }

    /// The configuration as it is pasted into an empty file.
    #[must_use]
    pub fn snippet(self, entry: &Entry) -> String {
        let Entry { program, arguments } = entry;
        match self {
            Self::Claude | Self::Cursor | Self::VsCode => {
                let mut servers = Map::new();
                servers.insert(SERVER.to_owned(), self.json(entry));
                pretty(&json!({ self.json_key(): servers }))
            }
            Self::Codex => {
                let quoted = |text: &str| toml::Value::from(text).to_string();
                let arguments: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
                format!("[mcp_servers.{SERVER}]\ncommand = {}\nargs = [{}]\n", quoted(program), arguments.join(", "))
            }
            // JSON strings and arrays are YAML too.
            Self::Goose => format!(
                "extensions:\n  {SERVER}:\n    name: {SERVER}\n    type: stdio\n    enabled: true\n    cmd: {}\n    \
                 args: {}\n    timeout: 300\n",
                json!(program),
                json!(arguments)
            ),
        }
    }

    /// Adds the entry to a configuration file, or replaces it. Other entries stay.
    ///
    /// # Errors
    /// If the file cannot be read as a whole or written; it is left as it was.
    pub fn install(self, file: &Path, entry: &Entry) -> Result<Installed, Refusal> {
        let refused = |reason: String| {
            Refusal::new(RefusalCode::InvalidRequest, format!("`{}` stays as it is: {reason}", file.display()))
                .with_remedy("print the configuration with `--print`, and paste it into the file")
        };
        let present = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(refused(error.to_string())),
        };
        let changed = match self {
            Self::Claude | Self::Cursor | Self::VsCode => self.with_json(&present, entry),
            Self::Codex => self.with_toml(&present, entry),
            Self::Goose if present.is_empty() => Ok(self.snippet(entry)),
            Self::Goose if present == self.snippet(entry) => Ok(present.clone()),
            Self::Goose => Err("it has settings already, and comments that would be lost".to_owned()),
        };
        let changed = changed.map_err(refused)?;
        if changed == present {
            return Ok(Installed::Unchanged);
        }
        replace(file, &changed).map_err(|error| refused(error.to_string()))?;
        Ok(Installed::Written)
    }

    fn json_key(self) -> &'static str {
        if self == Self::VsCode { "servers" } else { "mcpServers" }
    }

    fn json(self, Entry { program, arguments }: &Entry) -> Value {
        match self {
            Self::Cursor => json!({ "command": program, "args": arguments }),
            _ => json!({ "type": "stdio", "command": program, "args": arguments }),
        }
    }

    fn with_json(self, present: &str, entry: &Entry) -> Result<String, String> {
        if present.trim().is_empty() {
            return Ok(self.snippet(entry));
        }
        let mut whole: Value =
            serde_json::from_str(present).map_err(|error| format!("it is not plain JSON: {error}"))?;
        let root = whole.as_object_mut().ok_or("it is not a JSON object")?;
        let servers = root.entry(self.json_key()).or_insert_with(|| json!({}));
        let servers = servers.as_object_mut().ok_or_else(|| format!("its `{}` is not an object", self.json_key()))?;
        if servers.get(SERVER) == Some(&self.json(entry)) {
            return Ok(present.to_owned());
        }
        servers.insert(SERVER.to_owned(), self.json(entry));
        Ok(pretty(&whole))
    }

    fn with_toml(self, present: &str, entry: &Entry) -> Result<String, String> {
        let parse = |text: &str| text.parse::<toml::Table>().map_err(|error| format!("it is not valid TOML: {error}"));
        let own = |table: &toml::Table| table.get("mcp_servers").and_then(|servers| servers.get(SERVER)).cloned();
        let snippet = self.snippet(entry);
        match own(&parse(present)?) {
            Some(known) if Some(&known) == own(&parse(&snippet)?).as_ref() => return Ok(present.to_owned()),
            Some(_) => return Err(format!("it has another server `{SERVER}`: remove `[mcp_servers.{SERVER}]` first")),
            None => {}
        }
        let gap = if present.is_empty() { "" } else { "\n" };
        let changed =
            format!("{present}{}{gap}{snippet}", if present.ends_with('\n') || gap.is_empty() { "" } else { "\n" });
        // A file whose `mcp_servers` is an inline table takes no table below it.
        parse(&changed)?;
        Ok(changed)
    }
}

fn pretty(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// Replaces a file in one step and keeps its permissions. A link stays a link: people keep such files elsewhere.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let mut fresh = tempfile::NamedTempFile::new_in(directory)?;
    fresh.write_all(text.as_bytes())?;
    if let Ok(metadata) = fs::metadata(&target) {
        fresh.as_file().set_permissions(metadata.permissions())?;
    }
    fresh.as_file().sync_all()?;
    fresh.persist(&target)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENTS: [Client; 5] = [Client::Claude, Client::Cursor, Client::VsCode, Client::Codex, Client::Goose];

    fn entry() -> Entry {
        Entry { program: "/opt/a \"b\"/motor".to_owned(), arguments: vec!["mcp".to_owned()] }
    }

    #[test]
    fn a_new_file_is_the_printed_configuration_and_a_second_time_nothing_changes() {
        let directory = tempfile::tempdir().unwrap();
        for client in CLIENTS {
            let file = directory.path().join(format!("{client:?}/config"));
            assert_eq!(client.install(&file, &entry()).unwrap(), Installed::Written);
            assert_eq!(fs::read_to_string(&file).unwrap(), client.snippet(&entry()));
            assert_eq!(client.install(&file, &entry()).unwrap(), Installed::Unchanged, "{client:?}");
        }
    }

    #[test]
    fn other_settings_stay() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config");
        fs::write(&file, r#"{ "theme": "dark", "mcpServers": { "other": { "command": "x" } } }"#).unwrap();
        Client::Claude.install(&file, &entry()).unwrap();
        let changed: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(changed["theme"], "dark");
        assert_eq!(changed["mcpServers"]["other"]["command"], "x");
        assert_eq!(changed["mcpServers"]["motor"]["command"], "/opt/a \"b\"/motor");
        fs::write(&file, "# mine\nmodel = \"m\"\n[mcp_servers.other]\ncommand = \"x\"").unwrap();
        Client::Codex.install(&file, &entry()).unwrap();
        let changed = fs::read_to_string(&file).unwrap();
        assert!(changed.starts_with("# mine\n"), "{changed}");
        let changed: toml::Table = changed.parse().unwrap();
        assert_eq!(changed["mcp_servers"]["other"]["command"].as_str(), Some("x"));
        assert_eq!(changed["mcp_servers"]["motor"]["args"][0].as_str(), Some("mcp"));
    }

    #[test]
    fn a_file_that_is_not_understood_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config");
        for (client, text) in [
            (Client::VsCode, "{ // mine\n }"),
            (Client::Claude, "[]"),
            (Client::Cursor, r#"{ "mcpServers": 1 }"#),
            (Client::Codex, "model = "),
            (Client::Codex, "mcp_servers = {}"),
            (Client::Codex, "[mcp_servers.motor]\ncommand = \"other\""),
            (Client::Goose, "extensions: {}\n"),
        ] {
            fs::write(&file, text).unwrap();
            let refused = client.install(&file, &entry()).unwrap_err();
            assert!(refused.remedy.unwrap().contains("--print"));
            assert_eq!(fs::read_to_string(&file).unwrap(), text, "{client:?}");
        }
    }

    #[test]
    fn a_link_stays_a_link_and_permissions_stay() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let (real, link) = (directory.path().join("real"), directory.path().join("link"));
        fs::write(&real, "{}").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        Client::Claude.install(&link, &entry()).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::read_to_string(&real).unwrap().contains("mcpServers"));
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
