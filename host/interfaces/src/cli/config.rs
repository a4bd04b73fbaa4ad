//! `motor config show`: the configuration that a command started here would have (SPEC CONF-2).

use agent::config::ConfigEntry;
use base::text::{did_you_mean, nearest};
use base::{Refusal, RefusalCode};
use clap::Subcommand;

use super::Done;
use super::context::Context;
use crate::exit::CommandExit;
use crate::output::table::TextTable;
use crate::output::text;

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
}

pub(super) fn run(command: ConfigCommand, context: &Context) -> Done {
    let ConfigCommand::Show { key } = command;
    let entries = context.place()?.load()?.entries();
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
