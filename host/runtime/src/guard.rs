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

    #[test]
    fn each_construct_is_named_and_its_lookalike_passes() {
        let rows = [
            ("await import ('fs')", "dynamic import()", "const important = (1)"),
            ("const fs = require('fs')", "require()", "const required = (1)"),
            ("import('fs')", "dynamic import()", "reimport('fs')"),
            ("require ('fs')", "require()", "prerequire('fs')"),
            ("Function ('return 1')", "Function()", "Functions('return 1')"),
            ("globalThis['x']", "globalThis", "const myglobalThis = 1"),
            ("__proto__", "__proto__", "a.my__proto__"),
            ("eval\t('1')", "eval()", "const evaluate = retrieval('1')"),
            ("Function('return 1')", "Function()", "const myFunction = (1); myFunction(2)"),
            ("child_process.spawn('sh')", "child_process", "const child_processes = 1"),
            ("let child_process", "child_process", "let grandchild_process"),
            ("process.exit(0)", "process", "process.exits"),
            ("process . kill(1)", "process", "process.killed"),
            ("process.env", "process", "process.environment"),
            ("process.binding('fs')", "process", "preprocess.binding('fs')"),
            ("process.mainModule", "process", "process.mainModules"),
            ("globalThis.x", "globalThis", "const globalThisTime = 1"),
            ("a.__proto__", "__proto__", "a.__proto__type"),
            ("constructor['x']", "constructor[...]", "constructor"),
            ("a.constructor [b]", "constructor[...]", "a.reconstructor[b]"),
            ("x['constructor']", "[\"constructor\"]", "x['constructors']"),
            ("x[ \"constructor\" ]", "[\"constructor\"]", "x[\"a constructor\"]"),
            ("x[`constructor`]", "[\"constructor\"]", "['constructor', 'x']"),
        ];
        for (source, name, lookalike) in rows {
            assert_eq!(blocked(source), Some(name), "{source}");
            assert_eq!(blocked(lookalike), None, "{lookalike}");
        }
        for (_, name) in BLOCKED {
            assert!(rows.iter().any(|(_, tested, _)| *tested == name), "{name} has no row");
        }
    }
}
