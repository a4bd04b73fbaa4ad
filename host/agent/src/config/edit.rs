//! Changes of one key in the configuration file. Its comments and its order stay.

use std::path::Path;

use base::text::{Foreign, did_you_mean, nearest};
use base::{Refusal, RefusalCode};
use toml_edit::{DocumentMut, Item, Table, Value as TomlValue};

use super::{Config, ConfigFault, flatten, invalid, keys, parse, read_text, set, to_tree};
use crate::config::ValueSource;

/// Writes a key of the file: as a TOML value if the text is one, or a JSON object, that fits, otherwise as a string. A
/// missing file is made.
///
/// # Errors
/// If there is no such key, the value does not fit, or the file cannot be read or written: it stays as it is then.
pub fn set_in_file(file: &Path, key: &str, text: &str) -> Result<(), Refusal> {
    let string = || TomlValue::from(text);
    let written = |value: TomlValue| change(file, Some(key), |document| insert(document, key, value));
    match text.trim().parse::<TomlValue>().ok().or_else(|| of_json(text)) {
        Some(value) if !value.is_str() => written(value).or_else(|refusal| written(string()).map_err(|_| refusal)),
        Some(value) => written(value),
        None => written(string()),
    }
}

/// A JSON object, the form in which `motor config show` prints a table.
fn of_json(text: &str) -> Option<TomlValue> {
    let table: toml::Table = serde_json::from_str(text).ok()?;
    toml::Value::Table(table).to_string().parse().ok()
}

/// Takes a key out of the file, also if other values of it do not fit. Gives whether it was there.
///
/// # Errors
/// As [`set_in_file`].
pub fn unset_in_file(file: &Path, key: &str) -> Result<bool, Refusal> {
    let (section, name) = split(key)?;
    let mut was_there = false;
    change(file, None, |document| {
        let table = document.get_mut(section).and_then(Item::as_table_like_mut);
        was_there = table.is_some_and(|table| table.remove(name).is_some());
        Ok(())
    })?;
    Ok(was_there)
}

/// Checks the text of a configuration file as loading it does.
///
/// # Errors
/// If it is not TOML, has an unknown key, or a value that does not fit.
pub fn check_text(file: &Path, text: &str) -> Result<(), Refusal> {
    faults(file, text)?.into_iter().next().map_or(Ok(()), |fault| Err(fault.refusal))
}

/// The values of a text that do not fit.
fn faults(file: &Path, text: &str) -> Result<Vec<ConfigFault>, Refusal> {
    let values = parse(file, text)?;
    let mut tree = to_tree(&Config::default())?;
    let known = keys(&tree);
    let mut origins = std::collections::BTreeMap::new();
    let mut take = |(key, value): (String, _)| {
        set(&mut tree, &mut origins, &known, &key, value, ValueSource::File(file.to_owned())).err()
    };
    Ok(flatten(&values, &known).into_iter().filter_map(&mut take).collect())
}

/// Replaces the file by a text that loads.
///
/// # Errors
/// As [`check_text`], or if the file cannot be written.
pub fn replace_text(file: &Path, text: &str) -> Result<(), Refusal> {
    check_text(file, text)?;
    write(file, text)
}

fn write(file: &Path, text: &str) -> Result<(), Refusal> {
    // A link stays a link: people keep such files elsewhere.
    let target = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let failed = |reason: String| {
        Refusal::new(RefusalCode::StorageFailed, format!("cannot write `{}`: {reason}", file.display()))
    };
    let (Some(directory), Some(name)) = (target.parent(), target.file_name().and_then(|name| name.to_str())) else {
        return Err(failed("its name is no text".to_owned()));
    };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    store::replace_file(directory, name, text.as_bytes()).map_err(|error| failed(error.to_string()))
}

/// The text of the file; empty if the file is missing.
///
/// # Errors
/// If it cannot be read.
pub fn text_of(file: &Path) -> Result<String, Refusal> {
    Ok(read_text(file, false)?.unwrap_or_default())
}

/// Changes the file. Refused if the result has a value that does not fit; if no key is `set`, only if it is a new one, so
/// that several can be taken out one after another.
fn change(
    file: &Path,
    set: Option<&str>,
    change: impl FnOnce(&mut DocumentMut) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let text = text_of(file)?;
    let before = faults(file, &text)?;
    let mut document: DocumentMut = text.parse().map_err(|error| invalid(format!("`{}`: {error}", file.display())))?;
    change(&mut document)?;
    let changed = document.to_string();
    let is_old = |fault: &ConfigFault| set.is_none() && before.iter().any(|old| old.key == fault.key);
    match faults(file, &changed)?.into_iter().find(|fault| !is_old(fault)) {
        Some(fault) if set == Some(fault.key.as_str()) => Err(invalid(fault.refusal.reason)),
        Some(fault) => Err(fault.refusal),
        None if changed == text => Ok(()),
        None => write(file, &changed),
    }
}

fn insert(document: &mut DocumentMut, key: &str, value: TomlValue) -> Result<(), Refusal> {
    let (section, name) = split(key)?;
    let table = document.entry(section).or_insert(Item::Table(Table::new()));
    let table = table.as_table_like_mut();
    let table = table.ok_or_else(|| invalid(format!("`{section}` of the file is no section")))?;
    match table.get_mut(name).and_then(Item::as_value_mut) {
        // The comment behind the value stays.
        Some(old) => {
            let decor = old.decor().clone();
            *old = value;
            *old.decor_mut() = decor;
        }
        None => {
            table.insert(name, Item::Value(value));
        }
    }
    Ok(())
}

fn split(key: &str) -> Result<(&str, &str), Refusal> {
    key.split_once('.').ok_or_else(|| {
        let known = to_tree(&Config::default()).map(|tree| keys(&tree)).unwrap_or_default();
        let ends = known.iter().filter_map(|known| Some((known.split_once('.')?.1, known)));
        let meant = did_you_mean(nearest(key, ends));
        invalid(format!("`{}` is no key: write `section.key`{meant}", Foreign(key).escaped(60)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# mine\n[limits] # of a call\nfuel = 7 # enough\n\n[models]\nmotor = 'ollama/a'\n";

    fn edited(before: &str, edit: impl FnOnce(&Path) -> Result<(), Refusal>) -> Result<String, String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("motor.toml");
        std::fs::write(&file, before).unwrap();
        let result = edit(&file);
        let after = std::fs::read_to_string(&file).unwrap();
        result.map(|()| after.clone()).map_err(|refusal| {
            assert_eq!(after, before);
            refusal.reason
        })
    }

    #[test]
    fn a_change_keeps_all_else() {
        for (key, text, expected) in [
            ("limits.fuel", "9", FILE.replace("fuel = 7", "fuel = 9")),
            ("models.motor", "openai/gpt-5", FILE.replace("'ollama/a'", "\"openai/gpt-5\"")),
            ("models.motor", "'openai/x'", FILE.replace("'ollama/a'", "'openai/x'")),
            ("models.retries", "2", format!("{FILE}retries = 2\n")),
            ("code.timeout_ms", "5", format!("{FILE}\n[code]\ntimeout_ms = 5\n")),
            ("network.private", "['10.0.0.1:80']", format!("{FILE}\n[network]\nprivate = ['10.0.0.1:80']\n")),
            (
                "prices.openai/test",
                r#"{"input":1,"output":2.5}"#,
                format!("{FILE}\n[prices]\n\"openai/test\" = {{ input = 1, output = 2.5 }}\n"),
            ),
        ] {
            assert_eq!(edited(FILE, |file| set_in_file(file, key, text)), Ok(expected), "{key}");
        }
        assert_eq!(
            edited("models = { motor = 'ollama/a' }\n", |file| set_in_file(file, "models.retries", "2")),
            Ok("models = { motor = 'ollama/a' , retries = 2 }\n".to_owned())
        );
        let unset = edited(FILE, |file| unset_in_file(file, "models.motor").map(|was_there| assert!(was_there)));
        assert_eq!(unset, Ok(FILE.replace("motor = 'ollama/a'\n", "")));
        let none = edited(FILE, |file| unset_in_file(file, "code.timeout_ms").map(|was_there| assert!(!was_there)));
        assert_eq!(none, Ok(FILE.to_owned()));
    }

    #[test]
    fn a_wrong_change_changes_nothing() {
        for (before, key, text, says) in [
            (FILE, "limits.feul", "9", "did you mean `limits.fuel`"),
            (FILE, "limit.fuel", "9", "did you mean `limits.fuel`"),
            (FILE, "limits.fuel", "many", "`limits.fuel`"),
            (FILE, "models.motor", "opnai/x", "unknown provider"),
            (FILE, "fuel", "9", "is no key: write `section.key`; did you mean `limits.fuel`"),
            ("[limits\n", "limits.fuel", "9", "line 1"),
            ("limits = 7\n", "limits.fuel", "9", "is no section"),
        ] {
            let error = edited(before, |file| set_in_file(file, key, text)).unwrap_err();
            assert!(error.contains(says), "{key}: {error}");
        }
    }

    #[test]
    fn a_missing_file_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config/motor.toml");
        set_in_file(&file, "limits.fuel", "9").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "[limits]\nfuel = 9\n");
    }

    #[test]
    fn wrong_values_are_taken_out_one_after_another() {
        let file = "[network]\nresolver = 'here'\nwrites = ['POST']\n";
        let one = edited(file, |file| unset_in_file(file, "network.resolver").map(|_| ())).unwrap();
        assert_eq!(one, "[network]\nwrites = ['POST']\n");
        let error = edited(&one, |file| set_in_file(file, "limits.fuel", "9")).unwrap_err();
        assert!(error.contains("`network.writes`"), "{error}");
        assert_eq!(
            edited(&one, |file| unset_in_file(file, "network.writes").map(|_| ())),
            Ok("[network]\n".to_owned())
        );
    }
}
