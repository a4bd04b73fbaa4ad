//! `motor config`: the configuration that a command started here would have, and changes of its file (SPEC CONF-2).

use std::io::Write as _;
use std::path::Path;

use agent::config::{ConfigEntry, LoadedConfig, ValueSource, edit, is_price};
use agent::{ChangedSetting, TakesEffect};
use base::text::{did_you_mean, nearest};
use base::{Refusal, RefusalCode};
use clap::Subcommand;
use serde_json::{Value, json};

use super::Done;
use super::answers::{ChangedKey, ConfigFile, EditedConfig};
use super::consent::gone;
use super::context::{Context, usage};
use super::editor::{EditedText, edited};
use super::terminal::Terminal;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::table::TextTable;
use crate::output::text;
use crate::session::Session;

/// Columns for a value.
const VALUE: usize = 30;

/// Subcommands of `motor config`.
#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Print every key with its value and the source of the value
    Show {
        /// Only this key, or the keys of this section
        key: Option<String>,
    },
    /// Print the value of a key
    Get {
        /// The key as `section.key`
        key: String,
    },
    /// Write a key in the configuration file; a running host takes it
    Set {
        /// The key as `section.key`
        key: String,
        /// A TOML value, a JSON object, or plain text
        #[arg(allow_negative_numbers = true)]
        value: String,
    },
    /// Take a key out of the configuration file
    Unset {
        /// The key as `section.key`
        key: String,
    },
    /// Print the path of the configuration file
    Path,
    /// Edit the configuration file; it is checked before it is written
    Edit,
}

const OF_CONFIG: EditedText =
    EditedText { prefix: "motor-config-", otherwise: "set `EDITOR`, or use `motor config set KEY VALUE`" };

pub(super) async fn run(command: ConfigCommand, context: &Context) -> Done {
    let loaded = || context.place()?.load();
    match command {
        ConfigCommand::Show { key } => show(key, &loaded()?, context),
        ConfigCommand::Get { key } => {
            let entries = loaded()?.entries();
            match select(&entries, &key)?.as_slice() {
                [entry] if entry.key == key => context.answer(entry, || plain(entry))?,
                _ => {
                    let remedy = format!("`motor config show {key}` lists its keys");
                    return Err(usage(format!("`{key}` is a section"), remedy).into());
                }
            }
            Ok(CommandExit::Ok)
        }
        ConfigCommand::Set { key, value } => {
            let file = file(context)?;
            edit::set_in_file(&file, &key, &value)?;
            told(&key, &file, context).await
        }
        ConfigCommand::Unset { key } => {
            let file = file(context)?;
            let entries = LoadedConfig::of_defaults(&context.place()?.home).entries();
            if !is_price(&key) {
                select(&entries, &key)?;
            }
            if !edit::unset_in_file(&file, &key)? {
                context.output.warn(&format!("`{key}` is not in {}", text::one_line(&file.display().to_string())));
            }
            told(&key, &file, context).await
        }
        ConfigCommand::Path => {
            let file = file(context)?;
            let answer = ConfigFile { exists: file.is_file(), path: file };
            context.answer(&answer, || answer.path.display().to_string())?;
            Ok(CommandExit::Ok)
        }
        ConfigCommand::Edit => edit_file(context).await,
    }
}

/// The file that changes go to: the one of `--config`, otherwise the home's.
fn file(context: &Context) -> Result<std::path::PathBuf, Refusal> {
    let place = context.place()?;
    Ok(place.config.unwrap_or_else(|| place.home.config_file()))
}

/// Lets the owner edit the file until it loads or is given up.
async fn edit_file(context: &Context) -> Done {
    let Some(terminal) = Terminal::open() else {
        return Err(usage("there is no terminal to edit on", "use `motor config set KEY VALUE`").into());
    };
    let file = file(context)?;
    let before = edit::text_of(&file)?;
    let mut written = before.clone();
    loop {
        written = edited(written, OF_CONFIG, context).await?;
        let Err(refusal) = edit::check_text(&file, &written) else { break };
        let shown = text::revealed(&refusal.reason).into_owned();
        terminal.write(&format!("this does not load: {shown}\n")).map_err(|error| gone(&error))?;
        let again = terminal.ask("edit it again? [Y/n] ").await.map_err(|error| gone(&error))?;
        if !again.is_some_and(|said| matches!(said.trim(), "" | "y" | "Y" | "yes")) {
            context.output.say("the file stays as it was");
            return Ok(CommandExit::Failed);
        }
    }
    if edit::text_of(&file)? != before {
        let kept = tempfile::Builder::new().prefix(OF_CONFIG.prefix).suffix(".toml").tempfile();
        let kept = kept.and_then(|mut kept| kept.write_all(written.as_bytes()).map(|()| kept));
        let kept = kept.ok().and_then(|kept| kept.keep().ok());
        let path = kept.map(|(_, path)| format!("; your text is in {}", path.display())).unwrap_or_default();
        let reason = format!("the file was changed meanwhile, and stays as it is now{path}");
        return Err(Refusal::new(RefusalCode::TryLater, reason).with_remedy("`motor config edit` again").into());
    }
    if written != before {
        edit::replace_text(&file, &written)?;
    }
    let changed = reload(context).await?;
    context.answer(&EditedConfig { path: &file, changed: &changed }, || report(&changed))?;
    Ok(CommandExit::Ok)
}

/// Has the running host take the file, and prints the key as it is now.
async fn told(key: &str, file: &Path, context: &Context) -> Done {
    let changed = reload(context).await?;
    let mut entries = context.place()?.load()?.entries();
    if is_price(key) && !entries.iter().any(|entry| entry.key == key) {
        // It was unset, and the shipped table has none: the price is unknown now.
        entries.push(ConfigEntry { key: key.to_owned(), value: Value::Null, origin: ValueSource::Default });
    }
    let [entry] = select(&entries, key)?[..] else {
        return Err(usage(format!("`{key}` is a section"), "name one key").into());
    };
    if let ValueSource::Env(name) = &entry.origin {
        context.output.warn(&format!("the variable `{name}` has precedence over the file"));
    }
    let body = ChangedKey { entry, path: file, changed: &changed };
    context.answer(&body, || {
        let value = if entry.value.is_null() { "(unset)".to_owned() } else { entry.value.to_string() };
        let now = format!("{key} = {value}, from {}", entry.origin);
        if changed.is_empty() { now } else { format!("{now}\n{}", report(&changed)) }
    })?;
    Ok(CommandExit::Ok)
}

/// Tells the host that runs, if one does.
pub(super) async fn reload(context: &Context) -> Result<Vec<ChangedSetting>, Refusal> {
    match Session::connect(context.place()?).await? {
        Some(mut session) => session.ask(&Call::post("/v1/host/settings", &json!({}))?).await,
        None => Ok(Vec::new()),
    }
}

fn report(changed: &[ChangedSetting]) -> String {
    if changed.is_empty() {
        return "no running host has other settings".to_owned();
    }
    let line = |setting: &ChangedSetting| {
        let takes_effect = match setting.takes_effect {
            TakesEffect::NextRun => "the running host uses it for the next run",
            TakesEffect::NextCycle => "the cortex uses it for its next cycle",
            TakesEffect::NextStart => "the running host has to be started again for it",
        };
        format!("{}: {takes_effect}", setting.key)
    };
    changed.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn show(key: Option<String>, loaded: &LoadedConfig, context: &Context) -> Done {
    let entries = loaded.entries();
    match key {
        Some(key) => {
            let shown = select(&entries, &key)?;
            match shown.as_slice() {
                // One key by its whole name: the bare value, for scripts.
                [entry] if entry.key == key && !context.output.is_json() => context.output.print(&plain(entry))?,
                _ => context.answer(&shown, || render(&shown, context.output.columns))?,
            }
        }
        None => {
            let all: Vec<&ConfigEntry> = entries.iter().collect();
            context.answer(&all, || render(&all, context.output.columns))?;
        }
    }
    Ok(CommandExit::Ok)
}

fn select<'a>(entries: &'a [ConfigEntry], key: &str) -> Result<Vec<&'a ConfigEntry>, Refusal> {
    let section = format!("{}.", key.trim_end_matches('.'));
    let found: Vec<_> = entries.iter().filter(|entry| entry.key == key || entry.key.starts_with(&section)).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let keys = || entries.iter().map(|entry| entry.key.as_str());
    let ends = keys().filter_map(|key| Some((key.rsplit_once('.')?.1, key)));
    let meant = did_you_mean(nearest(key, keys().map(|key| (key, key)).chain(ends)));
    let shown: String = key.chars().take(80).collect();
    let refusal = Refusal::new(RefusalCode::InvalidRequest, format!("there is no key `{shown}`{meant}"));
    Err(refusal.with_remedy("`motor config show` lists all of them"))
}

fn plain(entry: &ConfigEntry) -> String {
    entry.value.as_str().map_or_else(|| entry.value.to_string(), str::to_owned)
}

fn render(entries: &[&ConfigEntry], columns: usize) -> String {
    let mut table = TextTable::new(&["KEY", "VALUE", "FROM"]);
    for entry in entries {
        let value = if entry.value.is_null() { "(unset)".to_owned() } else { entry.value.to_string() };
        // A long value is cut so that its origin has room; asked for by its key, or in JSON, it is whole.
        table.row([entry.key.clone(), text::brief(&value, VALUE), entry.origin.to_string()]);
    }
    table.render(columns)
}

#[cfg(test)]
mod tests {
    use agent::config::ValueSource;
    use serde_json::json;

    use super::*;

    fn entries() -> Vec<ConfigEntry> {
        ["limits.fuel", "limits.deadline_ms", "models.motor"]
            .map(|key| ConfigEntry { key: key.to_owned(), value: json!(7), origin: ValueSource::Default })
            .to_vec()
    }

    #[test]
    fn a_key_a_section_or_a_hint() {
        let keys = |key: &str| select(&entries(), key).map(|found| found.len());
        assert_eq!(keys("limits.fuel"), Ok(1));
        assert_eq!(keys("limits"), Ok(2));
        assert_eq!(keys("limits."), Ok(2));
        assert!(keys("limits.feul").unwrap_err().reason.contains("did you mean `limits.fuel`"));
        assert!(keys("deadline").unwrap_err().reason.contains("did you mean `limits.deadline_ms`"));
        assert!(!keys("zzz").unwrap_err().reason.contains("did you mean"));
    }
}
