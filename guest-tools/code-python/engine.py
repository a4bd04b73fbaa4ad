"""The engine of the world `code` for Python: one program, its value, its console, its error."""

import ast
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
import image
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

    def mark(self):
        """Where it stands, for `back`."""
        return len(self.parts), self.room, self.cut

    def back(self, mark):
        """Takes back all that was printed since the mark."""
        kept, self.room, self.cut = mark
        del self.parts[kept:]


def _without_returns(statements):
    """Makes each `return` outside of functions end the program with its value. Looks at statements only: an expression has none."""
    for index, node in enumerate(statements):
        if isinstance(node, ast.Return):
            place = {name: getattr(node, name) for name in node._attributes}
            value = node.value or ast.Constant(None, **place)
            error = ast.Call(ast.Name("__returned__", ast.Load(), **place), [value], [], **place)
            statements[index] = ast.Raise(error, None, **place)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for name in ("body", "orelse", "finalbody"):
                _without_returns(getattr(node, name, ()))
            for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                _without_returns(part.body)


def _compiled(source, lines_before=0):
    """The code of statements, which keeps the value of the last one under a name, if that is an expression."""
    tree = ast.parse("\n" * lines_before + source, NAME)
    if "return" in source:
        _without_returns(tree.body)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        place = {name: getattr(last, name) for name in last._attributes}
        tree.body[-1] = ast.Assign([ast.Name("__value__", ast.Store(), **place)], last.value, **place)
    return compile(tree, NAME, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def _last(source):
    """The index of the line, and the place, where the last statement seems to begin."""
    end = len(source)
    while end > 0:
        begin = source.rfind("\n", 0, end) + 1
        if source[begin:begin + 1] not in " \t\f\n#)]}":
            return source.count("\n", 0, begin), begin
        end = begin - 1
    return 0, 0


def _parts(source):
    """The codes that make up the program. Making a tree of objects takes longer than most programs run, so one is made of the last
    statement only, and of that only if it is no expression."""
    if any(word in source for word in ("await", "async", "__future__")):
        return [_compiled(source)]
    line, begin = _last(source)
    head, last = source[:begin], source[begin:]
    # Warnings about a part that is compiled again are printed again.
    before = sys.stderr.mark()
    try:
        parts = [compile(head, NAME, "exec", dont_inherit=True)] if begin else []
        mark = sys.stderr.mark()
        try:
            # What ended here was whole, so this is no line of a text.
            return [*parts, compile("\n" * line + last, NAME, "eval", dont_inherit=True)]
        except SyntaxError:
            sys.stderr.back(mark)
            return [*parts, _compiled(last, line)]
    except SyntaxError:
        # Also for a line such as `else:`, which goes on with the statement before it.
        sys.stderr.back(before)
        return [_compiled(source)]


def _run(source, scope):
    value = None
    try:
        for code in _parts(source):
            if code.co_flags & inspect.CO_COROUTINE:
                loop.run(types.FunctionType(code, scope)())
            else:
                value = eval(code, scope)
    except _Returned as returned:
        return returned.args[0]
    return scope.get("__value__") if value is None else value


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


def _outcome(source, program, scope):
    try:
        value = _run(source, scope)
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
        if web is not None:
            _given(program.grants)
        return _report(program)


def _report(program):
    console = _Console(program.max_console_bytes)
    sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = console
    clock.begin(program.now_ms)
    randomness.begin(program.seed)
    main = types.ModuleType("__main__")
    main.__returned__ = _Returned
    sys.modules["__main__"] = main
    # As Python reads the ends of lines.
    source = program.source.replace("\r\n", "\n").replace("\r", "\n")
    linecache.cache[NAME] = (len(source), None, source.splitlines(keepends=True), NAME)
    outcome = _outcome(source, program, main.__dict__)
    return interpreter.Report(outcome=outcome, console="".join(console.parts), console_truncated=console.cut)


def _given(grants):
    """What this program may use, of what the connected engine imports."""
    if interpreter.Grants.NETWORK in grants:
        web.open_up()
    if interpreter.Grants.FILES in grants:
        os.chdir("/workspace")
    else:
        surroundings.close_files()


# First programs, so that what the interpreter prepares at its first use is in the snapshot.
surroundings.close()
if web is None:
    surroundings.close_files()


def _first(source="1 + 1"):
    _report(interpreter.Program(source, 1, 0, 1000, 1000, interpreter.Grants(0)))
    sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = None


_first("import json, re, math\nprint(json.dumps({'a': [1, 2.5, None]}), f'{math.pi:.2f}')\nre.sub('a+', 'b', 'caat')\n")
for _source in ("1 +", "import re\n1 + 1", "return 1", "1 / 0", "import asyncio\nawait asyncio.sleep(1)"):
    _first(_source)
image.settle(_first)
