//! `(( … ))` around a command in double quotes: `if (( $(echo "$a > $b" | bc) ))`.
//!
//! The interpreter drops the quotes there before it runs the command, so that the `>` makes a file. In `$(( … ))` it keeps
//! them, so such a condition is rewritten before the script is read. Quotes, comments and `for (( … ))` are left alone.

/// The script with such conditions rewritten.
pub(crate) fn rewrite(script: &str) -> String {
    let mut text = String::with_capacity(script.len());
    let mut rest = script;
    while let Some(first) = rest.chars().next() {
        let skipped = match first {
            '(' if rest.starts_with("((") && !text.ends_with('$') && !ends_with_word(&text, "for") => {
                let body = rest.strip_prefix("((").and_then(body);
                if let Some(body) = body.filter(|body| body.contains("$(") && body.contains('"')) {
                    text.push_str(&format!("[[ $(({body})) -ne 0 ]]"));
                    rest = rest.get(body.len() + 4..).unwrap_or_default();
                    continue;
                }
                2
            }
            '#' if text.chars().next_back().is_none_or(char::is_whitespace) => rest.find('\n').unwrap_or(rest.len()),
            _ => quoted(rest),
        };
        let (passed, behind) = rest.split_at_checked(skipped).unwrap_or((rest, ""));
        text.push_str(passed);
        rest = behind;
    }
    text
}

/// The bytes of the first unit of the text: a text in quotes, an escape, or a character.
fn quoted(text: &str) -> usize {
    let mut characters = text.char_indices();
    let Some((_, first)) = characters.next() else { return 0 };
    match first {
        '\\' => characters.next().map_or(1, |(at, escaped)| at + escaped.len_utf8()),
        '\'' => characters.find(|(_, character)| *character == '\'').map_or(text.len(), |(at, _)| at + 1),
        '"' => {
            while let Some((at, character)) = characters.next() {
                match character {
                    '\\' => drop(characters.next()),
                    '"' => return at + 1,
                    _ => {}
                }
            }
            text.len()
        }
        other => other.len_utf8(),
    }
}

/// The text before the `))` that ends it.
fn body(text: &str) -> Option<&str> {
    let (mut at, mut depth) = (0, 0usize);
    loop {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        match rest.chars().next()? {
            '(' => depth += 1,
            ')' if depth == 0 => return rest.starts_with("))").then(|| text.get(..at))?,
            ')' => depth -= 1,
            _ => {}
        }
        at += quoted(rest);
    }
}

fn ends_with_word(text: &str, word: &str) -> bool {
    let before = text.trim_end().strip_suffix(word);
    before.is_some_and(|before| !before.ends_with(|character: char| character.is_alphanumeric() || character == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_conditions_with_a_quoted_command_are_rewritten() {
        for (script, expected) in [
            (r#"if (( $(echo "$a > 1" | bc) )); then"#, r#"if [[ $(( $(echo "$a > 1" | bc) )) -ne 0 ]]; then"#),
            (r#"(( $(f "x)") > 2 )) && g"#, r#"[[ $(( $(f "x)") > 2 )) -ne 0 ]] && g"#),
        ] {
            assert_eq!(rewrite(script), expected);
        }
        for script in [
            "(( x++ )); ((y = 2))",
            r#"for ((i = $(f "1"); i < 3; i++)); do :; done"#,
            r#"echo $(( $(f "1") + 1 ))"#,
            r#"echo '(( $(f "1") ))'"#,
            r#"echo "(( $(f) ))" # (( $(f "1") ))"#,
            r#"(( $(f '1 > 2') ))"#,
            r#"((f "a"); g "$(h)")"#,
            "((",
            "\\((",
            "é((é\"",
        ] {
            assert_eq!(rewrite(script), script);
        }
    }
}
