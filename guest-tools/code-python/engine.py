"""The engine of the world `code` for Python: one program, its value, its console, its error."""

import ast
import gc
import inspect
import io
import linecache
import os
import sys
import traceback
import types

import componentize_py_types
import clock  # These first: what is imported later binds the program's clock and randomness.
import randomness
import surroundings
import library  # noqa: F401  All of the standard library that programs find, before the snapshot is taken.
import loop
import values

try:
    import web
except ImportError:  # The isolated engine imports nothing to make requests with.
    web = None
from wit_world import exports
from wit_world.exports import interpreter

NAME = "<program>"
MAX_NAME = 128
MAX_MESSAGE = 4096


class _Returned(BaseException):
    """The value of a `return` outside of functions."""


class _Console(io.TextIOBase):
    """What a program prints, up to a number of bytes."""

    encoding = "utf-8"

    def __init__(self, room):
        self.room = room
        self.parts = []
        self.cut = False

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self.room > 0:
            data = text.encode("utf-8", "replace")
            kept = data[: self.room]
            self.parts.append(kept.decode("utf-8", "ignore"))
            self.room -= len(kept)
            self.cut = self.cut or len(kept) < len(data)
        elif text:
            self.cut = True
        return len(text)


class _Returns(ast.NodeTransformer):
    """Makes a `return` outside of functions end the program with its value."""

    def _leave(self, node):
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = _leave

    def visit_Return(self, node):
        value = node.value or ast.Constant(None)
        error = ast.Call(ast.Name("__returned__", ast.Load()), [value], [])
        return ast.copy_location(ast.Raise(ast.copy_location(error, node), None), node)


def _compiled(source):
    """The program, and the name its last expression is kept under, if it ends with one."""
    tree = ast.parse(source, NAME)
    tree = ast.fix_missing_locations(_Returns().visit(tree))
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        kept = ast.Assign([ast.Name("__value__", ast.Store())], last.value)
        tree.body[-1] = ast.fix_missing_locations(ast.copy_location(kept, last))
    return compile(tree, NAME, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def _run(source, scope):
    code = _compiled(source)
    try:
        if code.co_flags & inspect.CO_COROUTINE:
            loop.run(types.FunctionType(code, scope)())
        else:
            exec(code, scope)
    except _Returned as returned:
        return returned.args[0]
    return scope.get("__value__")


def _place(error):
    """The innermost line of the program that the error passed through."""
    if isinstance(error, SyntaxError) and error.filename == NAME:
        return error.lineno, error.offset or None
    found = (None, None)
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == NAME:
            found = (line, None)
    return found


def _fault(error):
    name = type(error).__name__[:MAX_NAME]
    try:
        message = error.msg if isinstance(error, SyntaxError) else str(error)
    except BaseException:  # `__str__` is the program's.
        message = "an error that cannot be shown"
    line, column = _place(error)
    return interpreter.Fault(name=name, message=str(message)[:MAX_MESSAGE], line=line, column=column)


def _outcome(program, scope):
    try:
        value = _run(program.source, scope)
        text, truncated = values.bounded(values.to_json(value), program.max_result_bytes)
        return componentize_py_types.Ok(interpreter.Value(json=text, truncated=truncated))
    except SystemExit as error:
        if error.code in (None, 0):
            return componentize_py_types.Ok(interpreter.Value(json="null", truncated=False))
        return componentize_py_types.Err(_fault(error))
    except BaseException as error:  # Every error of a program is its result.
        return componentize_py_types.Err(_fault(error))


class Interpreter(exports.Interpreter):
    def execute(self, program):
        console = _Console(program.max_console_bytes)
        sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = console
        clock.begin(program.now_ms)
        randomness.begin(program.seed)
        if web is not None:
            _given(program.grants)
        main = types.ModuleType("__main__")
        main.__returned__ = _Returned
        sys.modules["__main__"] = main
        lines = program.source.splitlines(keepends=True)
        linecache.cache[NAME] = (len(program.source), None, lines, NAME)
        outcome = _outcome(program, main.__dict__)
        return interpreter.Report(outcome=outcome, console="".join(console.parts), console_truncated=console.cut)


def _given(grants):
    """What this program may use, of what the connected engine imports."""
    if interpreter.Grants.NETWORK in grants:
        web.open_up()
    if interpreter.Grants.FILES in grants:
        os.chdir("/workspace")
    else:
        surroundings.close_files()


# A first program, so that what the interpreter prepares at its first use is in the snapshot.
surroundings.close()
if web is None:
    surroundings.close_files()
_warm = "import json, re, math\nprint(json.dumps({'a': [1, 2.5, None]}), f'{math.pi:.2f}')\nre.sub('a+', 'b', 'caat')\n"
for _source in (_warm, "1 +", "return 1", "1 / 0", "import asyncio\nawait asyncio.sleep(1)"):
    _console = _Console(1000)
    sys.stdout = sys.stderr = _console
    _main = types.ModuleType("__main__")
    _main.__returned__ = _Returned
    sys.modules["__main__"] = _main
    _outcome(interpreter.Program(_source, 1, 0, 1000, 1000, interpreter.Grants(0)), _main.__dict__)
sys.stdout = sys.stderr = None
# A collection of a call looks at what the call made, and not at the library.
gc.collect()
gc.freeze()
