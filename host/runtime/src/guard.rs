//! The static guard: refuses code that plainly tries to leave the sandbox, with a clear message (SPEC CODE-4).
//!
//! It is a courtesy, not the boundary: all of these can be written so that no pattern matches. The boundary is the
//! component's empty import list. Escape tests run with the guard off.

use std::sync::LazyLock;

use regex::Regex;

/// The blocked constructs: a pattern, and its name in the message.
const BLOCKED: [(&str, &str); 10] = [
    (r"\bimport\s*\(", "dynamic import()"),
    (r"\brequire\s*\(", "require()"),
    (r"\beval\s*\(", "eval()"),
    (r"\bFunction\s*\(", "Function()"),
    (r"\bchild_process\b", "child_process"),
    (r"\bprocess\s*\.\s*(exit|kill|env|binding|mainModule)\b", "process"),
    (r"\bglobalThis\b", "globalThis"),
    (r"\b__proto__\b", "__proto__"),
    (r"\bconstructor\b\s*\[", "constructor[...]"),
    (r#"\[\s*["'`]constructor["'`]\s*\]"#, "[\"constructor\"]"),
];

static PATTERNS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    // The patterns are constants: a test compiles every one of them.
    BLOCKED.iter().filter_map(|(pattern, name)| Regex::new(pattern).ok().map(|regex| (regex, *name))).collect()
});

/// The name of the first disallowed construct in `source`, if any.
#[must_use]
pub fn blocked(source: &str) -> Option<&'static str> {
    PATTERNS.iter().find(|(pattern, _)| pattern.is_match(source)).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(PATTERNS.len(), BLOCKED.len());
    }

    #[test]
    fn refuses_the_obvious_and_lets_the_rest_pass() {
        for source in [
            "await import('fs')",
            "require ('fs')",
            "eval('1')",
            "new Function('return 1')()",
            "process.exit(1)",
            "globalThis.x = 1",
            "({}).__proto__",
            "x['constructor']('return this')",
        ] {
            assert!(blocked(source).is_some(), "{source}");
        }
        for source in [
            "const process = 3; return process + 1",
            "return 'the function of imports'",
            "const evaluate = x => x; return evaluate(1)",
            "class A { constructor(x) { this.x = x } } return new A(1).x",
            "return [1, 2].map(x => x * 2)",
        ] {
            assert_eq!(blocked(source), None, "{source}");
        }
    }
}
