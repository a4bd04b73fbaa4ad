//! Errors a program did not catch, as name, message and place in the program's own source.
//!
//! The thrown value is the program's: a getter may throw, a `stack` may be any text. Unreadable parts are left out.

use rquickjs::{Ctx, Object, Value};

use crate::bindings::exports::motor::host::interpreter::Fault;
use crate::cut;

/// The file name the engine gives the program's frames.
pub const FILE_NAME: &str = "program.js";

/// Bytes of a fault's name and of its message that are kept.
const MAX_NAME_BYTES: usize = 128;
const MAX_MESSAGE_BYTES: usize = 4096;

/// A fault that is not tied to a place.
pub fn plain(name: &str, message: impl Into<String>) -> Fault {
    Fault { name: name.to_owned(), message: message.into(), line: None, column: None }
}

/// Reads the fault from a thrown value. `columns_before` is how many columns of the first line precede the program's.
pub fn of_thrown<'js>(ctx: &Ctx<'js>, thrown: &Value<'js>, columns_before: u32) -> Fault {
    let Some(error) = thrown.as_object().filter(|object| object.is_error()) else {
        return plain("Error", format!("the program threw a value that is not an error: {}", shown(ctx, thrown)));
    };
    let name = text(ctx, error, "name").filter(|name| !name.is_empty()).unwrap_or_else(|| "Error".to_owned());
    let message = text(ctx, error, "message").unwrap_or_default();
    let place = text(ctx, error, "stack").and_then(|stack| place_in(&stack));
    Fault {
        name: cut::prefix(&name, MAX_NAME_BYTES).to_owned(),
        message: cut::prefix(&message, MAX_MESSAGE_BYTES).to_owned(),
        line: place.map(|(line, _)| line),
        column: place
            .map(|(line, column)| if line == 1 { column.saturating_sub(columns_before).max(1) } else { column }),
    }
}

/// A property as text, if reading it neither fails nor gives something else.
fn text(ctx: &Ctx<'_>, object: &Object<'_>, property: &str) -> Option<String> {
    match object.get::<_, Value>(property) {
        Ok(value) => value.as_string().and_then(|string| string.to_string().ok()),
        Err(_) => {
            ctx.catch();
            None
        }
    }
}

/// A thrown value that is not an error, as JSON or as text.
fn shown<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> String {
    if value.is_undefined() {
        return "undefined".to_owned();
    }
    match ctx.json_stringify(value.clone()) {
        Ok(Some(json)) => {
            json.to_string().map_or_else(|_| "?".to_owned(), |json| cut::prefix(&json, MAX_MESSAGE_BYTES).to_owned())
        }
        Ok(None) => value.type_name().to_owned(),
        Err(_) => {
            ctx.catch();
            value.type_name().to_owned()
        }
    }
}

/// Line and column of the innermost frame of the program in an engine's stack text.
fn place_in(stack: &str) -> Option<(u32, u32)> {
    stack.lines().find_map(|frame| {
        let (_, place) = frame.rsplit_once(FILE_NAME)?;
        let (line, column) = place.strip_prefix(':')?.trim_end_matches(')').split_once(':')?;
        Some((line.parse().ok()?, column.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_the_innermost_frame_of_the_program() {
        let check = |stack, expected| assert_eq!(place_in(stack), expected, "{stack}");
        check("    at parse (native)\n    at f (program.js:2:9)\n    at <eval> (program.js:4:1)\n", Some((2, 9)));
        check("    at program.js:3:1\n", Some((3, 1)));
        check("    at <eval> (<input>:1:1)\n", None);
        check("program.js:99999999999:1", None);
        check("", None);
    }
}
