//! The static guard: refuses code that plainly tries to leave the sandbox, with a clear message (SPEC CODE-4).
//!
//! It is a courtesy, not the boundary: all of these can be written so that no pattern matches. The boundary is the
//! component's empty import list. Escape tests run with the guard off.

use std::sync::LazyLock;

use regex::Regex;

use crate::Language;

/// The constructs of Python, which are modules and functions that could only fail there.
const BLOCKED_IN_PYTHON: [(&str, &str); 7] = [
    // A statement begins a line or follows a `;`: the same words in a text are none.
    (
        r"(?m)(?:^|;)[ \t]*(?:from\s+|import\s+(?:[\w.]+(?:[ \t]+as[ \t]+\w+)?[ \t]*,[ \t]*)*)(?:subprocess|ctypes|socket|multiprocessing|pty|posix)\b",
        "import of a module for processes or sockets",
    ),
    (
        r"(?m)(?:^|;)[ \t]*from\s+os\s+import\s+(?:[\w \t,]*|\([\w\s,]*)\b(?:system|popen|exec\w*|spawn\w*|fork\w*|kill)\b",
        "os.system",
    ),
    (r"\bos\s*\.\s*(?:system|popen|exec\w*|spawn\w*|fork\w*|kill)\b", "os.system"),
    (r"\b__import__\s*\(", "__import__()"),
    (r"\b__subclasses__\b", "__subclasses__"),
    (r"\b__globals__\b", "__globals__"),
    (r"\b__builtins__\b", "__builtins__"),
];

/// The constructs of JavaScript: a pattern, and its name in the message.
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

type Patterns = Vec<(Regex, &'static str)>;

/// The patterns are constants: a test compiles every one of them.
fn compiled(patterns: &[(&str, &'static str)]) -> Patterns {
    patterns.iter().filter_map(|(pattern, name)| Regex::new(pattern).ok().map(|regex| (regex, *name))).collect()
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| compiled(&BLOCKED));
static PATTERNS_OF_PYTHON: LazyLock<Patterns> = LazyLock::new(|| compiled(&BLOCKED_IN_PYTHON));

/// The name of the first disallowed construct in `source`, if any.
#[must_use]
pub fn blocked(language: Language, source: &str) -> Option<&'static str> {
    let patterns = match language {
        Language::JavaScript => &PATTERNS,
        Language::Python => &PATTERNS_OF_PYTHON,
    };
    patterns.iter().find(|(pattern, _)| pattern.is_match(source)).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked(source: &str) -> Option<&'static str> {
        super::blocked(Language::JavaScript, source)
    }

    #[test]
    fn every_pattern_compiles() {
        assert_eq!((PATTERNS.len(), PATTERNS_OF_PYTHON.len()), (BLOCKED.len(), BLOCKED_IN_PYTHON.len()));
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

    #[test]
    fn each_construct_of_python_is_named_and_its_lookalike_passes() {
        let of_modules = "import of a module for processes or sockets";
        let rows = [
            ("import subprocess", of_modules, "important = 'subprocess'"),
            ("import  subprocess", of_modules, "reimport subprocess"),
            ("from subprocess import run", of_modules, "import subprocesses"),
            ("from ctypes import *", of_modules, "import socketserver"),
            ("import ctypes", of_modules, "import ctypeslib"),
            ("from socket import create_connection", of_modules, "from sockets import x"),
            ("import multiprocessing", of_modules, "import multiprocessings"),
            ("import pty", of_modules, "import ptyprocess"),
            ("import posix", of_modules, "import posixpath"),
            ("from\tposix import fork", of_modules, "therefrom posix"),
            ("import os, subprocess", of_modules, "import os, subprocesses"),
            ("import json as j, socket as s", of_modules, "import json as socket"),
            ("x = 1; import socket", of_modules, "print(\"Disconnected from socket\")"),
            ("if x:\n    from ctypes import cdll", of_modules, "print('''the import\nof a socket''')"),
            ("from os import system", "os.system", "from os import path, sep"),
            ("from os import path, execv as run", "os.system", "from os import path\nsystem = 1"),
            ("from os import (\n    path,\n    fork,\n)", "os.system", "from os.path import join as kill"),
            ("x = 1; from os import popen", "os.system", "print('taken from os import system')"),
            ("os.system('ls')", "os.system", "os.systems = 1"),
            ("os.popen('ls')", "os.system", "os.popened = 1"),
            ("os . execv('x', [])", "os.system", "pos.system(1)"),
            ("os.exec", "os.system", "os.path.exec"),
            ("os.spawnl(1)", "os.system", "os.respawn"),
            ("os.fork()", "os.system", "os.path.forked"),
            ("os.forkpty()", "os.system", "os.unfork"),
            ("os.kill(1, 9)", "os.system", "os.killed = 1"),
            ("__import__('os')", "__import__()", "import importlib"),
            ("__import__ ('os')", "__import__()", "my__import__('os')"),
            ("().__class__.__base__.__subclasses__()", "__subclasses__", "subclasses = []"),
            ("f.__subclasses__", "__subclasses__", "f.my__subclasses__"),
            ("x.__subclasses__[0]", "__subclasses__", "x.__subclasses__s"),
            ("f.__globals__", "__globals__", "globals()"),
            ("f.__globals__['os']", "__globals__", "f.my__globals__"),
            ("f.__globals__ ", "__globals__", "f.__globals__s"),
            ("__builtins__['open']", "__builtins__", "import builtins"),
            ("a = __builtins__", "__builtins__", "my__builtins__"),
            ("__builtins__", "__builtins__", "__builtins__s"),
        ];
        for (source, name, lookalike) in rows {
            assert_eq!(super::blocked(Language::Python, source), Some(name), "{source}");
            assert_eq!(super::blocked(Language::Python, lookalike), None, "{lookalike}");
        }
        assert_eq!(
            super::blocked(Language::Python, "constructor['x'] = eval('1')"),
            None,
            "the words of another language"
        );
        for (_, name) in BLOCKED_IN_PYTHON {
            assert!(rows.iter().any(|(_, tested, _)| *tested == name), "{name} has no row");
        }
    }
}
