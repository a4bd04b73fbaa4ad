//! Reads command-line input into requests.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use agent::{DirectoryInput, FileInput};
use base::{Refusal, RefusalCode};
use llm::MicroUsd;
use serde_json::{Map, Value};

use super::context::usage;

/// The most that is read from standard input or a file in place of an argument, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a setting of the form `key=value`.
pub(super) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("write `section.key=value`".to_owned()),
    }
}

/// The inputs of a skill: an object, and single values that go into it. A value that is not JSON is text.
pub(super) fn of_skill(object: Option<&str>, single: Vec<(String, String)>) -> Result<Option<Value>, Refusal> {
    let wrong = |reason: String| usage(reason, "write `--inputs '{\"name\": …}'`, or `--input name=value`");
    let mut inputs = match object.map(serde_json::from_str::<Map<String, Value>>) {
        None if single.is_empty() => return Ok(None),
        None => Map::new(),
        Some(Ok(inputs)) => inputs,
        Some(Err(error)) => return Err(wrong(format!("`--inputs` is not a JSON object: {error}"))),
    };
    for (name, value) in single {
        let value = serde_json::from_str(&value).unwrap_or(Value::String(value));
        if inputs.insert(name.clone(), value).is_some() {
            return Err(wrong(format!("the input `{name}` is given twice")));
        }
    }
    Ok(Some(Value::Object(inputs)))
}

/// Reads `path` or `name=path`. If a file with the whole text as its name exists, the text is its path.
pub(super) fn file(text: &str, exists: &dyn Fn(&Path) -> bool) -> Result<FileInput, Refusal> {
    let absolute = |path: &str| -> Result<PathBuf, Refusal> {
        std::path::absolute(path).map_err(|_| usage(format!("`{text}` is not a path"), "write `PATH` or `NAME=PATH`"))
    };
    if !exists(Path::new(text))
        && let Some((name, path)) = text.split_once('=')
        && !name.is_empty()
    {
        return Ok(FileInput { path: absolute(path)?, name: Some(name.to_owned()) });
    }
    Ok(FileInput { path: absolute(text)?, name: None })
}

/// Reads `DIR` and `DIR:ro`, and gives each path of `shown` to the directory that it lies in.
pub(super) fn directories(texts: &[String], shown: &[PathBuf]) -> Result<Vec<DirectoryInput>, Refusal> {
    let absolute = |path: &Path| {
        std::path::absolute(path)
            .map_err(|_| usage(format!("`{}` is not a path", path.display()), "write `--on DIR` or `--on DIR:ro`"))
    };
    let mut directories = Vec::new();
    for text in texts {
        let (path, read_only) = match text.strip_suffix(":ro") {
            Some(path) if !Path::new(text).exists() => (path, true),
            _ => (text.as_str(), false),
        };
        directories.push(DirectoryInput { path: absolute(Path::new(path))?, read_only, shown: Vec::new() });
    }
    for path in shown {
        let path = absolute(path)?;
        let inside = directories.iter_mut().find_map(|directory| {
            let inside = path.strip_prefix(&directory.path).ok()?.to_str()?.to_owned();
            Some((directory, inside))
        });
        let Some((directory, inside)) = inside else {
            let reason = format!("`--show {}` lies in none of the directories of `--on`", path.display());
            return Err(usage(reason, "write the path as seen from here, or absolute"));
        };
        directory.shown.push(inside);
    }
    Ok(directories)
}

/// An argument, or standard input if it is `-`.
pub(super) async fn text_or_stdin(argument: &str) -> Result<String, Refusal> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let reading = tokio::task::spawn_blocking(|| bounded(std::io::stdin().lock(), "standard input"));
    reading.await.unwrap_or_else(|_| Err(Refusal::new(RefusalCode::Failed, "standard input cannot be read")))
}

/// A file of text.
pub(super) fn text_file(path: &Path) -> Result<String, Refusal> {
    let (file, what) = open(path)?;
    bounded(file, &what)
}

/// A file of at most `most` bytes.
pub(super) fn binary_file(path: &Path, most: u64) -> Result<Vec<u8>, Refusal> {
    let (file, what) = open(path)?;
    bounded_bytes(file, &what, most)
}

fn open(path: &Path) -> Result<(std::fs::File, String), Refusal> {
    let what = format!("`{}`", path.display());
    match std::fs::File::open(path) {
        Ok(file) => Ok((file, what)),
        Err(error) => Err(Refusal::new(RefusalCode::InvalidRequest, format!("cannot read {what}: {error}"))),
    }
}

fn bounded(source: impl std::io::Read, what: &str) -> Result<String, Refusal> {
    let bytes = bounded_bytes(source, what, MAX_BYTES)?;
    String::from_utf8(bytes).map_err(|_| Refusal::new(RefusalCode::InvalidRequest, format!("{what} is not UTF-8 text")))
}

fn bounded_bytes(source: impl std::io::Read, what: &str, most: u64) -> Result<Vec<u8>, Refusal> {
    let refuse = |reason: String| Refusal::new(RefusalCode::InvalidRequest, reason);
    let mut bytes = Vec::new();
    source
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| refuse(format!("cannot read {what}: {error}")))?;
    if bytes.len() as u64 > most {
        return Err(refuse(format!("{what} has more than {most} bytes")));
    }
    Ok(bytes)
}

/// US dollars on the command line, with or without the sign.
pub(super) fn usd(text: &str) -> Result<MicroUsd, String> {
    let number = text.trim().trim_start_matches('$').parse::<f64>().ok();
    number.and_then(MicroUsd::from_usd).ok_or_else(|| "write US dollars, such as `0.50`".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_have_a_key() {
        assert_eq!(setting("limits.fuel=1=2"), Ok(("limits.fuel".to_owned(), "1=2".to_owned())));
        assert_eq!(setting("models.motor="), Ok(("models.motor".to_owned(), String::new())));
        assert!(setting("limits.fuel").is_err());
        assert!(setting("=1").is_err());
    }

    #[test]
    fn inputs_are_json_where_they_can_be() {
        let check = |object: Option<&str>, single: &[&str], expected: Result<Option<Value>, &str>| {
            let single = single.iter().map(|text| setting(text).unwrap()).collect();
            match (of_skill(object, single), expected) {
                (Ok(inputs), Ok(expected)) => assert_eq!(inputs, expected),
                (Err(refusal), Err(says)) => assert!(refusal.reason.contains(says), "{}", refusal.reason),
                (got, expected) => panic!("{got:?}, not {expected:?}"),
            }
        };
        check(None, &[], Ok(None));
        check(Some("{}"), &[], Ok(Some(json!({}))));
        check(
            Some("{\"a\": 1}"),
            &["rows=7", "path=a.csv", "id=007", "on=true", "list=[1]", "text=\"7\"", "sum=1=2"],
            Ok(Some(
                json!({ "a": 1, "rows": 7, "path": "a.csv", "id": "007", "on": true, "list": [1], "text": "7", "sum": "1=2" }),
            )),
        );
        check(Some("[1]"), &[], Err("not a JSON object"));
        check(Some("nonsense"), &[], Err("not a JSON object"));
        check(Some("{\"a\": 1}"), &["a=2"], Err("`a` is given twice"));
        check(None, &["a=1", "a=1"], Err("twice"));
    }

    #[test]
    fn files_may_be_renamed() {
        let check = |text: &str, path: &str, name: Option<&str>| {
            let exists = |path: &Path| path == Path::new("/a=b.csv");
            let expected = FileInput { path: path.into(), name: name.map(str::to_owned) };
            assert_eq!(file(text, &exists).unwrap(), expected, "{text}");
        };
        check("/data.csv", "/data.csv", None);
        check("in/x.csv=/data.csv", "/data.csv", Some("in/x.csv"));
        check("/a=b.csv", "/a=b.csv", None);
        check("x=/a=b.csv", "/a=b.csv", Some("x"));
        check("=/x", &std::path::absolute("=/x").unwrap().to_string_lossy(), None);
        assert!(file("x=", &|_| false).is_err());
    }

    #[test]
    fn text_is_bounded_and_utf_8() {
        assert_eq!(bounded(&b"return 1"[..], "x").unwrap(), "return 1");
        assert!(bounded(&b"\xff"[..], "x").unwrap_err().reason.contains("not UTF-8"));
        assert!(bounded(std::io::repeat(b'x'), "x").unwrap_err().reason.contains("more than"));
    }
}
