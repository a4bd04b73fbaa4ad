"""Runs a script as `python3` does that a shell started: `sys.argv`, standard streams, exit status, traceback.

The host sends this text to the engine as the program, with a call of `_run` behind it. The streams are those of WASI, so
that the output of a script that is stopped is not lost.
"""

import atexit
import builtins
import importlib.machinery
import io
import linecache
import os
import runpy
import sys
import traceback
import types

_HERE = (lambda: 0).__code__.co_filename


def _streams():
    stdin = io.BufferedReader(io.FileIO(0, "r", closefd=False))
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(stdin, encoding="utf-8", errors="surrogateescape")
    for name, number, errors in (("stdout", 1, "surrogateescape"), ("stderr", 2, "backslashreplace")):
        raw = io.BufferedWriter(io.FileIO(number, "w", closefd=False))
        stream = io.TextIOWrapper(raw, encoding="utf-8", errors=errors, line_buffering=number == 2)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _input(prompt="", /):
    if prompt != "":
        print(prompt, end="", flush=True)
    line = sys.stdin.readline()
    if not line:
        raise EOFError("EOF when reading a line")
    return line.removesuffix("\n")


def _imports(first):
    """Modules beside the script: the engine itself finds none in files."""
    loader = (importlib.machinery.SourceFileLoader, importlib.machinery.SOURCE_SUFFIXES)
    sys.path[:] = [first]
    sys.path_hooks.append(importlib.machinery.FileFinder.path_hook(loader))
    sys.meta_path.insert(1, importlib.machinery.PathFinder)
    # A script leaves no caches in the workspace.
    sys.dont_write_bytecode = True


def _module(name):
    loaded = sys.modules.get({"json": "json.tool"}.get(name, name))
    # The source of the library is not in the sandbox, so its modules run by the function that their last lines call.
    if loaded is not None and name.partition(".")[0] in sys.stdlib_module_names:
        main = getattr(loaded, "main", None)
        if not callable(main):
            sys.exit(f"/usr/bin/python3: the module {name} cannot be run here")
        main(*([sys.argv] if name == "calendar" else []))
        return
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except ImportError as error:
        if error.__traceback__ is not None and getattr(error, "name", None) not in (None, name):
            raise
        sys.exit(f"/usr/bin/python3: No module named {name}: nothing can be installed here")


def _main(given):
    name, text = given["name"], given["text"]
    if given["origin"] == "module":
        return _module(name)
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    main = types.ModuleType("__main__")
    if given["origin"] == "file":
        main.__file__ = name
    sys.modules["__main__"] = main
    exec(compile(text, name, "exec", dont_inherit=True), main.__dict__)


def _status(error):
    """The exit status of an error that ended the script, which is told on standard error."""
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        print(error.code, file=sys.stderr)
        return 1
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == _HERE:
        trace = trace.tb_next
    error = error.with_traceback(trace)
    if sys.excepthook is sys.__excepthook__:
        traceback.print_exception(error)
    else:
        sys.excepthook(type(error), error, trace)
    return 1


def _guarded(work, *arguments):
    try:
        work(*arguments)
    except BaseException as error:  # Every error of a script is its exit status.
        return _status(error)
    return 0


def _flush():
    for stream in (sys.__stdout__, sys.__stderr__):
        if not stream.closed:
            stream.flush()


def _run(given):
    _streams()
    builtins.input = _input
    os.environ.update(given["environment"])
    sys.argv = given["arguments"]
    sys.executable = "/usr/bin/python3"
    os.chdir(given["directory"])
    _imports(given["search"])
    status = _guarded(_main, given)
    return _guarded(atexit._run_exitfuncs) or _guarded(_flush) or status
