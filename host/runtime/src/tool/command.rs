//! `wasi:cli/run` commands: one tool with a command line (SPEC HOST-3).
//!
//! It must not know a terminal, a shell or the host's own streams: arguments and input are the call's, output is kept
//! within bounds.

use capabilities::stdio::BoundedOutput;
use serde_json::Value;
use wasmtime::component::Val;

use crate::outcome::{Outcome, ToolError};
use crate::state::CommandLine;
use crate::wit_json::{Field, Type, read, schema};
use crate::{Limit, Limits};

/// The description for a model if the author wrote none.
pub(crate) const DESCRIPTION: &str = "Runs a command-line program: `args` are its arguments, `stdin` its standard input. Gives back what it wrote to \
     standard output.";

/// Maximum size of the standard error tail in an error, in bytes.
const MAX_TAIL_BYTES: usize = 2 * 1024;

/// Whether an export is the entry point of a command.
pub(crate) fn is_run(export: &str, function: &str) -> bool {
    function == "run" && export.starts_with("wasi:cli/run@0.2.")
}

/// The parameters, as those of a function.
pub(crate) fn fields() -> [Field; 2] {
    let field = |name: &str, ty, docs: &str| Field {
        name: name.to_owned(),
        ty: Type::Option(Box::new(ty)),
        docs: Some(docs.to_owned()),
    };
    [
        field(
            "args",
            Type::List(Box::new(Type::String)),
            "Arguments of the command line, one each, without the program's name.",
        ),
        field("stdin", Type::String, "Standard input."),
    ]
}

/// The schema of the arguments.
pub(crate) fn parameters() -> Value {
    schema::object(&fields())
}

/// The command line of a call. `name` is the program's own name, its first argument.
///
/// # Errors
/// If the arguments are invalid: one sentence for the model.
pub(super) fn command_line(name: &str, json: &str, limits: &Limits) -> Result<CommandLine, String> {
    let (mut arguments, mut stdin) = (vec![name.to_owned()], String::new());
    for value in read::from_text(&fields(), json)? {
        match value {
            Val::Option(Some(value)) => match *value {
                Val::List(values) => arguments.extend(values.into_iter().filter_map(text)),
                value => stdin = text(value).unwrap_or_default(),
            },
            _ => continue,
        }
    }
    // A C program would see a shorter argument than the one that was checked.
    if arguments.iter().any(|argument| argument.contains('\0')) {
        return Err("`args` cannot hold the character NUL".to_owned());
    }
    let stdout = BoundedOutput::of(Limit::OutputBytes, limits.output_bytes);
    Ok(CommandLine { arguments, stdin: stdin.into_bytes().into(), stdout })
}

fn text(value: Val) -> Option<String> {
    if let Val::String(text) = value { Some(text) } else { None }
}

/// The result of a command that exited.
pub(super) fn settle(status: i32, stdout: &str, stderr: &str) -> Outcome<String, ToolError> {
    if status == 0 {
        return Outcome::Returned(stdout.to_owned());
    }
    let stderr = stderr.trim_end();
    let tail = stderr.get(stderr.ceil_char_boundary(stderr.len().saturating_sub(MAX_TAIL_BYTES))..);
    let said = match tail.unwrap_or_default() {
        "" => String::new(),
        tail if tail.len() < stderr.len() => format!(": …{tail}"),
        tail => format!(": {tail}"),
    };
    Outcome::Refused(ToolError::Failed {
        message: format!("the command exited with status {status}{said}"),
        retryable: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_read_or_refused() {
        let read = |arguments: &str| command_line("run", arguments, &Limits::default());
        let line = read(r#"{"args":["-n","é"],"stdin":"in"}"#).unwrap();
        assert_eq!(line.arguments, ["run", "-n", "é"]);
        assert_eq!(&*line.stdin, b"in");
        assert_eq!(read(r#"{"args":null}"#).unwrap().arguments, ["run"]);
        for (arguments, says) in [
            ("[]", "an object"),
            (r#"{"args":"-n"}"#, "`args` should be an array"),
            (r#"{"args":[1]}"#, "`args[0]` should be a string"),
            (r#"{"argv":[]}"#, "`argv` is unknown; there are `args`, `stdin`"),
            (r#"{"args":["a\u0000b"]}"#, "NUL"),
        ] {
            let error = read(arguments).err().unwrap_or_default();
            assert!(error.contains(says), "{arguments}: {error}");
        }
    }

    #[test]
    fn a_status_other_than_zero_is_a_failure_with_the_end_of_standard_error() {
        assert_eq!(settle(0, "out", "noise"), Outcome::Returned("out".to_owned()));
        let failure = |status, stderr: &str| match settle(status, "out", stderr) {
            Outcome::Refused(ToolError::Failed { message, retryable: false }) => message,
            other => panic!("{other:?}"),
        };
        assert_eq!(failure(3, "no such file\n"), "the command exited with status 3: no such file");
        assert_eq!(failure(-1, ""), "the command exited with status -1");
        let long = failure(1, &format!("{}the end", "é".repeat(MAX_TAIL_BYTES)));
        assert!(long.len() < MAX_TAIL_BYTES + 60 && long.contains(": …é") && long.ends_with("the end"), "{long}");
    }
}
