//! Python under attack: escapes, bombs and leaks of state, a row each, with its benign twin. The classes are those that programs in
//! JavaScript are tried with (`code.rs`).

use std::time::Duration;

use runtime::{CodeErrorCode, Limits, Program};
use tests::block_on;
use tokio_util::sync::CancellationToken;

use super::{MEMORY, RECURSION, STACK, TIME, engine, program, run, value};

/// An attempt to leave, words of the error that ends it, a program that looks alike, and the value of that.
const ESCAPES: &[(&str, &str, &str, &str)] = &[
    (
        "f = lambda: 0\nf.__globals__['__builtins__']['open']('/etc/passwd')",
        "given no files",
        "f = lambda: 4\nf()",
        "4",
    ),
    (
        "f = lambda: 0\nf.__builtins__['open']('/etc/passwd')",
        "given no files",
        "f = lambda: 4\nf.__builtins__['len']('abcd')",
        "4",
    ),
    (
        "import sys\nf = sys._getframe()\nwhile f.f_back: f = f.f_back\nf.f_globals['os'].listdir('/')",
        "given no files",
        "import sys\nsys._getframe().f_lineno",
        "2",
    ),
    (
        "import gc, io\n[k for k in gc.get_referents(io.RawIOBase.__mro__[1].__subclasses__()) if k.__name__ == 'FileIO'][0]('/etc/passwd')",
        "nothing for `open`",
        "import gc, io\n[k.__name__ for k in gc.get_referents(io.RawIOBase.__mro__[1].__subclasses__())][:2]",
        "[\"RawIOBase\", \"FileIO\"]",
    ),
    (
        "import importlib, os\nimportlib.reload(os).listdir('/')",
        "No module named 'os'",
        "import importlib\nimportlib.import_module('json').dumps([1])",
        "\"[1]\"",
    ),
    (
        "import pickle\npickle.loads(b\"cos\\nsystem\\n(S'id'\\ntR.\")",
        "module 'os' has no attribute 'system'",
        "import pickle\npickle.loads(pickle.dumps([1]))",
        "[1]",
    ),
    (
        "import marshal\neval(marshal.loads(marshal.dumps(compile(\"__import__('posix').open('/etc/passwd', 0)\", 'x', 'eval'))))",
        "given no files",
        "import marshal\neval(marshal.loads(marshal.dumps(compile('1 + 1', 'x', 'eval'))))",
        "2",
    ),
    ("eval('__import__(\"os\").system(\"id\")')", "module 'os' has no attribute 'system'", "eval('1 + 1')", "2"),
    ("import _ctypes", "No module named '_ctypes'", "import struct\nstruct.unpack('<H', b'\\x01\\x00')", "[1]"),
    ("open('/proc/self/environ').read()", "given no files", "import io\nio.StringIO('a').read()", "\"a\""),
    (
        "import http.client\nhttp.client.HTTPConnection('example.com').request('GET', '/')",
        "has no sockets",
        "from http import HTTPStatus\nHTTPStatus.OK.value",
        "200",
    ),
    (
        "import asyncio\nawait asyncio.open_connection('1.1.1.1', 53)",
        "has no sockets",
        "import asyncio\nawait asyncio.gather(asyncio.sleep(1, 1), asyncio.sleep(2, 2))",
        "[1, 2]",
    ),
    (
        "import smtplib\nsmtplib.SMTP('1.1.1.1')",
        "has no sockets",
        "from email.message import EmailMessage\nm = EmailMessage()\nm['To'] = 'a@b.example'\nm['To']",
        "\"a@b.example\"",
    ),
    (
        "import os\nos.posix_spawn('/bin/id', ['id'], {})",
        "module 'os' has no attribute 'posix_spawn'",
        "import shlex\nshlex.split('a \"b c\"')",
        "[\"a\", \"b c\"]",
    ),
    (
        "import multiprocessing\nmultiprocessing.Process(target=print).start()",
        "No module named 'multiprocessing.",
        "from concurrent.futures import ThreadPoolExecutor\nlist(ThreadPoolExecutor().map(abs, [-1, 2]))",
        "[1, 2]",
    ),
    (
        "import tempfile\ntempfile.TemporaryFile()",
        "No usable temporary directory",
        "import io\nio.BytesIO(b'x').getvalue()",
        "\"x\"",
    ),
    (
        "import shutil\nshutil.rmtree('/')",
        "nothing for `shutil.rmtree`",
        "import posixpath\nposixpath.basename('/a/b')",
        "\"b\"",
    ),
    (
        "import zipfile\nzipfile.ZipFile('/etc/x.zip')",
        "given no files",
        "import io, zipfile\nb = io.BytesIO()\nwith zipfile.ZipFile(b, 'w') as z:\n    z.writestr('a', 'x')\nzipfile.ZipFile(b).namelist()",
        "[\"a\"]",
    ),
    (
        "import sys\nsys.modules['os'].execv('/bin/sh', ['sh'])",
        "module 'os' has no attribute 'execv'",
        "import sys\n'os' in sys.modules",
        "true",
    ),
    ("import os\nos.putenv('A', '1')", "nothing for `os.putenv`", "import os\nos.environ.get('A')", "null"),
    (
        "import signal, os\nos.kill(os.getpid(), signal.SIGKILL)",
        "module 'os' has no attribute 'kill'",
        "import signal\nsignal.SIGKILL.value",
        "9",
    ),
    ("import os\nos._exit(0)", "has no processes", "import sys\nsys.exit(0)", "null"),
    ("import ctypes.util", "No module named 'ctypes'", "import math\nmath.isqrt(17)", "4"),
    (
        "import types\ntypes.FunctionType(compile(\"open('/etc/passwd')\", 'x', 'eval'), {})()",
        "given no files",
        "import types\ntypes.FunctionType(compile(\"len('abcd')\", 'x', 'eval'), {})()",
        "4",
    ),
    (
        "import runpy\nrunpy.run_path('/etc/passwd')",
        "given no files",
        "import runpy\nrunpy.run_module('stat')['S_IFREG']",
        "32768",
    ),
    // The engine's own modules are within reach: without its refusals there is still nothing behind them.
    (
        "import surroundings, io\nsurroundings._audit.__code__ = (lambda e, a: None).__code__\n\
         next(k for k in io.RawIOBase.__mro__[1].__subclasses__() if k.__name__ == 'FileIO')('/etc/passwd')",
        "the engine stopped",
        "import surroundings\nsurroundings._audit.__name__",
        "\"_audit\"",
    ),
    (
        "import componentize_py_runtime\ncomponentize_py_runtime.call_import(0, [])",
        "the engine stopped",
        "import componentize_py_types\ncomponentize_py_types.Ok(1).value",
        "1",
    ),
    ("import web", "No module named 'web'", "import html\nhtml.escape('<')", "\"&lt;\""),
];

/// A program that takes without end, the beginnings of the errors that may end it, a modest one, and the value of that.
const BOMBS: &[(&str, &[&str], &str, &str)] = &[
    ("s = 'x'\nwhile True:\n    s += s", &[MEMORY], "'x' * 3", "\"xxx\""),
    ("d = {}\nwhile True:\n    d[len(d)] = 'x' * 1000", &[MEMORY, TIME], "len({n: n for n in range(9)})", "9"),
    ("sum(iter(int, 1))", &[TIME], "sum(iter([0, 1, 2].pop, 0))", "3"),
    (
        "import itertools\nlist(itertools.count())",
        &[MEMORY, TIME],
        "import itertools\nlist(itertools.islice(itertools.count(), 3))",
        "[0, 1, 2]",
    ),
    (
        "import asyncio\nwhile True:\n    await asyncio.sleep(0)",
        &[TIME],
        "import asyncio\nawait asyncio.sleep(9, 'slept')",
        "\"slept\"",
    ),
    (
        "while True:\n    try:\n        raise KeyError\n    except BaseException:\n        pass",
        &[TIME],
        "try:\n    raise KeyError\nexcept KeyError:\n    x = 1\nx",
        "1",
    ),
    ("'%0999999999d' % 1", &[MEMORY], "'%05d' % 1", "\"00001\""),
    (
        "int('9' * 10_000_000)",
        &["EXECUTION_ERROR: ValueError: Exceeds the limit (4300 digits)"],
        "int('9' * 9)",
        "999999999",
    ),
    ("import time\nwhile True:\n    time.sleep(3600)", &[TIME], "import time\ntime.sleep(3600)", "null"),
    (
        "import xml.etree.ElementTree as e\ne.fromstring('<!DOCTYPE a [<!ENTITY a \"aaaaaaaaaa\">' + ''.join(f'<!ENTITY {chr(98 + n)} \"{f\"&{chr(97 + n)};\" * 10}\">' for n in range(9)) + ']><a>&j;</a>')",
        &["EXECUTION_ERROR: ParseError: limit on input amplification factor", MEMORY, TIME],
        "import xml.etree.ElementTree as e\ne.fromstring('<a>x</a>').text",
        "\"x\"",
    ),
    (
        "compile('-' * 100_000 + '1', 'x', 'eval')",
        &["EXECUTION_ERROR: MemoryError: Parser stack overflowed", RECURSION, STACK],
        "eval('-' * 4 + '1')",
        "1",
    ),
    ("while True:\n    print('x' * 10_000)", &[TIME], "print('x')\n1", "1"),
    ("x = []\nfor _ in range(100_000):\n    x = [x]\nrepr(x)", &[RECURSION, STACK], "repr([[[]]])", "\"[[[]]]\""),
    (
        "import threading\nthreading.Lock().acquire() and threading.Event().wait()",
        &[TIME, "EXECUTION_ERROR: the engine stopped"],
        "import threading\nthreading.Lock().acquire()",
        "true",
    ),
    (
        "import functools\nfunctools.reduce(lambda a, _: a * a, range(99), 3)",
        &[TIME],
        "import functools\nfunctools.reduce(lambda a, n: a * n, [1, 2, 3])",
        "6",
    ),
    (
        "import difflib\ndifflib.SequenceMatcher(None, 'ab' * 9000, 'ba' * 9000).get_opcodes()\nwhile True: pass",
        &[TIME],
        "import difflib\ndifflib.get_close_matches('aple', ['apple'])",
        "[\"apple\"]",
    ),
    (
        "class A:\n    def __getattr__(self, n):\n        return getattr(self, n)\nA().x",
        &[RECURSION, STACK],
        "class A:\n    def __getattr__(self, n):\n        return n\nA().x",
        "\"x\"",
    ),
    ("[0] * (1 << 40)", &["EXECUTION_ERROR: OverflowError: cannot fit 'int'"], "[0] * 2", "[0, 0]"),
    ("memoryview(bytearray(1 << 30))", &[MEMORY], "len(memoryview(bytearray(8)))", "8"),
    (
        "def f(n):\n    return 1 + f(n + 1)\nf(0)",
        &[RECURSION, STACK],
        "def f(n):\n    return n and 1 + f(n - 1)\nf(500)",
        "500",
    ),
    // The value and the error are the program's too, and are put into words under the same limits.
    ("x = []\nfor _ in range(60):\n    x = [x, x]\nx", &[TIME, MEMORY], "x = []\nx = [x, x]\nx", "[[], []]"),
    (
        "class A:\n    def __repr__(self):\n        while True: pass\nA()",
        &[TIME],
        "class A:\n    def __repr__(self):\n        return 'A'\nA()",
        "\"A\"",
    ),
    (
        "class A(Exception):\n    def __str__(self):\n        while True: pass\nraise A",
        &[TIME],
        "class A(Exception):\n    def __str__(self):\n        return 'A'\nstr(A())",
        "\"A\"",
    ),
];

/// A program that changes the interpreter, and one whose value shows the change. Both as one program are the twin: within its own run
/// a change holds.
const LEAKS: &[(&str, &str)] = &[
    ("import sys\nsys.path.append('/leak')", "import sys\nsys.path"),
    ("import warnings\nwarnings.simplefilter('error')", "import warnings\nlen(warnings.filters)"),
    ("import decimal\ndecimal.getcontext().prec = 3", "import decimal\nstr(decimal.Decimal(1) / 3)"),
    ("import gc\ngc.disable()", "import gc\ngc.isenabled()"),
    (
        "import logging\nlogging.getLogger().addHandler(logging.NullHandler())",
        "import logging\nlen(logging.getLogger().handlers)",
    ),
    ("import logging\nlogging.disable(50)", "import logging\nlogging.root.manager.disable"),
    ("import sys\nsys.set_int_max_str_digits(0)", "import sys\nsys.get_int_max_str_digits()"),
    ("import sys\nsys.argv.append('leak')", "import sys\nsys.argv"),
    ("import sys\nsys.excepthook = None", "import sys\nsys.excepthook is sys.__excepthook__"),
    ("import random\nrandom.seed(99)", "import random\nrandom.random()"),
    ("import time\ntime.sleep(1000)", "import time\nround(time.time())"),
    ("import string\nstring.ascii_letters = 'leak'", "import string\nlen(string.ascii_letters)"),
    ("import collections\ncollections.leak = 1", "import collections\nhasattr(collections, 'leak')"),
    ("import locale\nlocale.str = None", "import locale\ncallable(locale.str)"),
    ("import re\nre.compile = None", "import re\ncallable(re.compile)"),
    ("import builtins\nbuiltins.len = lambda x: 7", "len([])"),
    (
        "import contextvars\nc = contextvars.ContextVar('c')\nt = c.set(1)",
        "import contextvars\nlen(contextvars.copy_context())",
    ),
    ("import asyncio\nasyncio.sleep = None", "import asyncio\ncallable(asyncio.sleep)"),
    ("import atexit\natexit.register(print, 'leak')", "import atexit\natexit._ncallbacks()"),
    ("class Leak: pass", "[k.__name__ for k in object.__subclasses__()].count('Leak')"),
    ("import linecache\nlinecache.cache['leak'] = 1", "import linecache\n'leak' in linecache.cache"),
    ("import uuid\nuuid.NAMESPACE_DNS = 1", "import uuid\nstr(uuid.NAMESPACE_DNS)"),
    ("import gc\ngc.get_referents(str.__dict__)[0]['leak'] = 2", "hasattr(str, 'leak')"),
    ("import json\njson.dumps.__code__ = (lambda *a, **k: 'leak').__code__", "import json\njson.dumps([1])"),
    ("import values\nvalues.to_json = lambda value: '\"leak\"'", "1 + 1"),
    ("import clock\nclock._LOOK = 0", "import time\ntime.time() == time.time()"),
];

#[test]
fn no_way_leads_out_of_the_isolated_engine() {
    let Some(sandbox) = engine(false) else { return };
    let mut others = Vec::new();
    for (attack, words, twin, expected) in ESCAPES {
        let report = run(sandbox, attack);
        let error = report.outcome.expect_err(attack);
        assert_eq!(error.code, CodeErrorCode::Error, "{attack}: {error}");
        if !error.message.contains(words) {
            others.push(format!("{attack}\n    {words:?} is not said: {error}"));
        }
        assert!(report.requests.is_empty(), "{attack}");
        assert_eq!(value(sandbox, twin), *expected, "{twin}");
    }
    // An attack that fails for another reason, such as a mistake of its own, shows nothing.
    assert!(others.is_empty(), "{}", others.join("\n"));
}

#[test]
fn the_guard_is_a_courtesy_and_the_sandbox_the_boundary() {
    let Some(sandbox) = engine(false) else { return };
    for (attack, words, twin, expected) in [
        (
            "import subprocess\nsubprocess.run(['id'])",
            "does not support processes",
            "'import subprocess'.split()[1]",
            "\"subprocess\"",
        ),
        ("import os\nos.system('id')", "module 'os' has no attribute 'system'", "import os\nos.sep", "\"/\""),
        (
            "f = lambda: 0\nf.__globals__['__builtins__']['open']('/etc/passwd')",
            "given no files",
            "f = lambda: 0\nf.__name__",
            "\"<lambda>\"",
        ),
    ] {
        let guarded = |source: &str| {
            let guarded = Program { guard: true, ..program(source) };
            block_on(sandbox.execute(&guarded, &Limits::default(), &CancellationToken::new())).outcome
        };
        let blocked = guarded(attack).expect_err(attack);
        assert_eq!(blocked.code, CodeErrorCode::Blocked, "{attack}: {blocked}");
        let plain = run(sandbox, attack).outcome.expect_err(attack);
        assert!(plain.code == CodeErrorCode::Error && plain.message.contains(words), "{attack}: {plain}");
        assert_eq!(guarded(twin).unwrap_or_else(|error| panic!("{twin}: {error}")).json, expected, "{twin}");
    }
}

#[test]
fn a_program_without_end_or_measure_ends_alone() {
    let Some(sandbox) = engine(false) else { return };
    for (attack, ends, twin, expected) in BOMBS {
        let started = std::time::Instant::now();
        let hurried = Program { timeout: Duration::from_millis(500), ..program(attack) };
        let report = block_on(sandbox.execute(&hurried, &Limits::default(), &CancellationToken::new()));
        let error = report.outcome.expect_err(attack);
        assert!(ends.iter().any(|end| error.to_string().starts_with(end)), "{attack}: {error}");
        assert!(started.elapsed() < tests::AT_ONCE, "{attack}: {:?}", started.elapsed());
        assert!(report.usage.peak_memory_bytes <= Limits::default().memory_bytes, "{attack}");
        assert!(report.console.len() <= 8 * 1024, "{attack}");
        assert_eq!(value(sandbox, twin), *expected, "{twin}");
    }
    let hurried = Program { timeout: Duration::from_millis(100), ..program("while True: pass") };
    let error = block_on(sandbox.execute(&hurried, &Limits::default(), &CancellationToken::new())).outcome.unwrap_err();
    assert_eq!(error.to_string(), "EXECUTION_TIMEOUT: code exceeded its limit of 100 ms");
}

#[test]
fn a_change_of_the_interpreter_ends_with_its_program() {
    let Some(sandbox) = engine(false) else { return };
    for (change, look) in LEAKS {
        let fresh = value(sandbox, look);
        assert!(run(sandbox, change).outcome.is_ok(), "{change}");
        assert_eq!(value(sandbox, look), fresh, "{change}");
        // The twin, which also shows that the look would see a leak.
        assert_ne!(value(sandbox, &format!("{change}\n{look}")), fresh, "{change}");
    }
}

#[test]
fn fuel_is_limited_and_counted() {
    let Some(sandbox) = engine(false) else { return };
    let limits = Limits { fuel: 100_000, ..Limits::default() };
    let report = block_on(sandbox.execute(&program("while True: pass"), &limits, &CancellationToken::new()));
    assert_eq!(report.outcome.unwrap_err().to_string(), "EXECUTION_LIMIT: `fuel` is limited to 100000");
    let report = run(sandbox, "1");
    assert!(report.usage.fuel > 0 && report.usage.peak_memory_bytes > 0, "{:?}", report.usage);
    assert!(run(sandbox, "sum(range(100_000))").usage.fuel > report.usage.fuel);
}

#[test]
fn hostile_sources_get_an_answer() {
    let Some(sandbox) = engine(false) else { return };
    let long = "x".repeat((1 << 20) + 1);
    assert_eq!(run(sandbox, &long).outcome.unwrap_err().code, CodeErrorCode::Limit);
    let nested = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
    for source in [
        "\0",
        "\u{feff}1",
        "return }",
        "'''",
        "if x:\n\t1\n        2",
        "# -*- coding: utf-7 -*-\n+AGEAYg-",
        "\u{202e}x = 1",
        "__returned__(1)",
        "raise __returned__",
        "x\r\n\r1",
        "(lambda: 0).__code__.replace(co_code=bytes([100, 255] * 2))",
        "exec((lambda: 0).__code__.replace(co_code=bytes([255, 255] * 4)))",
        &nested,
    ] {
        run(sandbox, source);
        assert_eq!(value(sandbox, "1 + 1"), "2", "after {source:?}");
    }
}

#[test]
fn a_program_is_cancelled_and_ends_no_other() {
    let Some(sandbox) = engine(false) else { return };
    let (patient, cancel) = (program("sum(n for n in range(300_000))"), CancellationToken::new());
    let endless = Program { timeout: Duration::from_secs(30), ..program("while True: pass") };
    let (limits, never) = (Limits::default(), CancellationToken::new());
    let hurried = Program { timeout: Duration::from_millis(20), ..endless.clone() };
    let (cancelled, other, ()) = block_on(async {
        tokio::join!(
            sandbox.execute(&endless, &limits, &cancel),
            async {
                // The other one ends first, and then the endless one is cancelled.
                let other = sandbox.execute(&patient, &limits, &never).await;
                cancel.cancel();
                other
            },
            // Beside them, deadlines pass that are not theirs.
            async {
                for _ in 0..5 {
                    let late = sandbox.execute(&hurried, &limits, &never).await.outcome.unwrap_err();
                    assert_eq!(late.code, CodeErrorCode::Timeout, "{late}");
                }
            }
        )
    });
    assert_eq!(cancelled.outcome.unwrap_err().code, CodeErrorCode::Cancelled);
    assert_eq!(other.outcome.unwrap().json, "44999850000");
}
