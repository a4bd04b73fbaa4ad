//! The names of commands in a script of the shell: the first words of its simple commands.
//!
//! An approximation that reads quotes, comments, separators and substitutions, but no functions and no here-documents. A word
//! too many in a proposal is seen by the owner; a command that is missing is refused in the run.

/// Words after which a command begins.
const KEYWORDS: [&str; 13] =
    ["if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "time", "done", "fi"];
/// Commands that run the command after them.
const PREFIXES: [&str; 5] = ["xargs", "env", "exec", "command", "nice"];
/// Words whose rest is no command.
const HEADERS: [&str; 4] = ["for", "case", "in", "esac"];

/// The names, in order of appearance.
pub(super) fn commands(script: &str) -> Vec<String> {
    let mut found = Scan { names: Vec::new(), word: String::new(), is_first: true, is_plain: true, is_target: false };
    let mut signs = script.chars().peekable();
    let mut quote: Option<char> = None;
    // The quotes around each substitution that is open, and the parentheses that are open in it.
    let (mut around, mut open) = (Vec::new(), 0_usize);
    while let Some(sign) = signs.next() {
        match (quote, sign) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            // A substitution within quotes is a script of its own.
            (None | Some('"'), '$') if signs.peek() == Some(&'(') => {
                signs.next();
                found.separate();
                around.push((quote.take(), std::mem::take(&mut open)));
            }
            (None | Some('"'), '`') => found.separate(),
            (Some(_), _) => found.quoted(),
            (None, '\'' | '"') => {
                quote = Some(sign);
                found.quoted();
            }
            (None, '\\') => {
                signs.next();
                found.quoted();
            }
            (None, '#') if found.word.is_empty() => while signs.next_if(|sign| *sign != '\n').is_some() {},
            (None, '(') => {
                open += 1;
                found.separate();
            }
            (None, ')') => {
                match open.checked_sub(1) {
                    Some(less) => open = less,
                    None => (quote, open) = around.pop().unwrap_or_default(),
                }
                found.separate();
            }
            (None, ';' | '|' | '&' | '\n') => found.separate(),
            (None, sign) if sign.is_whitespace() => found.end_word(),
            (None, sign) => found.word.push(sign),
        }
    }
    found.separate();
    found.names
}

struct Scan {
    names: Vec<String>,
    word: String,
    /// Whether the next word names a command.
    is_first: bool,
    /// Whether the word has no quoted part: only such words are names.
    is_plain: bool,
    /// Whether the next word is the file of a redirection.
    is_target: bool,
}

impl Scan {
    fn quoted(&mut self) {
        self.is_plain = false;
    }

    fn separate(&mut self) {
        self.end_word();
        self.is_first = true;
        self.is_target = false;
    }

    fn end_word(&mut self) {
        let (word, is_plain) = (std::mem::take(&mut self.word), std::mem::replace(&mut self.is_plain, true));
        if word.is_empty() && is_plain || !self.is_first || std::mem::take(&mut self.is_target) {
            return;
        }
        let redirection = word.trim_start_matches(|sign: char| sign.is_ascii_digit());
        if is_plain && redirection.starts_with(['<', '>']) {
            self.is_target = redirection.ends_with(['<', '>']);
            return;
        }
        let is_assignment = word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '_')
        });
        // The value of an option of a prefix: `xargs -n 1 rm`.
        let is_number = !word.is_empty() && word.bytes().all(|sign| sign.is_ascii_digit());
        let is_other = is_assignment || is_number || KEYWORDS.contains(&word.as_str());
        if is_other || word.starts_with('-') {
            return;
        }
        self.is_first = PREFIXES.contains(&word.as_str());
        if !HEADERS.contains(&word.as_str()) && is_plain && grants::commands(std::slice::from_ref(&word)).is_ok() {
            self.names.push(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_words_of_simple_commands() {
        for (script, names) in [
            ("curl -s https://a.example | jq '.[] | .x' | sort -u", &["curl", "jq", "sort"][..]),
            ("A=1 B=$(date +%s) grep -c x f && wc -l f || echo no; ls", &["date", "grep", "wc", "echo", "ls"]),
            ("if test -f a; then cat a; else touch a; fi", &["test", "cat", "touch"]),
            ("for f in *.csv; do head -1 \"$f\"; done", &["head"]),
            ("echo \"$(tail -1 f)\" 'curl evil'", &["echo", "tail"]),
            ("find . | xargs -n 1 rm", &["find", "xargs", "rm"]),
            ("# curl\necho a#b", &["echo"]),
            ("(cd x && sed s/a/b/ f) > out", &["cd", "sed"]),
            ("2> log < in sort; >out cat; > 'a b' wc; >", &["sort", "cat", "wc"]),
            ("\"cu\"rl x; '' ; \\", &[]),
            ("", &[]),
        ] {
            assert_eq!(commands(script), names, "{script}");
        }
    }

    #[test]
    fn hostile_scripts_end() {
        for script in ["'".repeat(10_000), "$(".repeat(10_000), "`".repeat(9_999), "\u{0}\u{202e};".repeat(1_000)] {
            assert!(commands(&script).len() <= script.len());
        }
    }
}
