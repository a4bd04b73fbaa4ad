"""What a program does not find: files, processes, sockets, threads."""

import _thread
import builtins
import concurrent.futures.process
import concurrent.futures.thread
import io
import os
import socket
import sys
import threading
import uuid
from concurrent import futures

import posix

uuid._generate_time_safe = uuid._UuidCreate = None



def _no_files(*_arguments, **_named):
    raise PermissionError("this program was given no files")


def _no_file(*_arguments, **_named):
    raise FileNotFoundError("this program was given no files")


def _nothing(what):
    def refuse(*_arguments, **_named):
        raise PermissionError(f"the sandbox has no {what}")

    return refuse


def _no_thread(*_arguments, **_named):
    raise RuntimeError("can't start new thread: the sandbox has none; a ThreadPoolExecutor runs its work at once")


class _AtOnce(futures.Executor):
    """Runs each piece of work when it is handed in."""

    def __init__(self, max_workers=None, *_arguments, initializer=None, initargs=(), **_named):
        self._max_workers = max_workers or 1
        if initializer is not None:
            initializer(*initargs)

    def submit(self, function, /, *arguments, **named):
        future = futures.Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future

    def shutdown(self, wait=True, *, cancel_futures=False):
        pass


_FILES = """access chdir chmod chown close closerange copy_file_range dup dup2 fchdir fdatasync fdopen fsync ftruncate getcwd getcwdb
link listdir lseek mkdir mkdirat makedirs mkfifo mknod open pread preadv pwrite pwritev read readinto readlink readv remove rename replace
rmdir scandir sendfile statvfs fstatvfs symlink sync truncate unlink utime walk fwalk write writev isatty get_terminal_size
set_blocking get_blocking set_inheritable get_inheritable""".split()
_STATS = "stat lstat fstat".split()
_PROCESSES = """abort execv execve fork forkpty kill killpg posix_spawn posix_spawnp spawnv spawnve system popen wait waitpid _exit
nice pipe times getloadavg sched_yield getlogin uname""".split()


def _replace(names, refuse):
    for name in names:
        for module in (os, posix):
            if hasattr(module, name):
                setattr(module, name, refuse)


def close():
    """Takes away what no program is given. Those calls have no answer in the sandbox: they would end the program."""
    _replace(_PROCESSES, _nothing("processes"))
    builtins.input = _no_input
    os.environ.clear()
    socket.socket = socket.create_connection = socket.getaddrinfo = _nothing("sockets")
    threading.Thread.start = _no_thread
    for name in ("start_new_thread", "start_joinable_thread", "start_new"):
        setattr(_thread, name, _no_thread)
    futures.ThreadPoolExecutor = futures.ProcessPoolExecutor = _AtOnce
    futures.thread.ThreadPoolExecutor = futures.process.ProcessPoolExecutor = _AtOnce
    sys.path.clear()
    sys.path_hooks.clear()
    sys.path_importer_cache.clear()
    sys.meta_path[:] = [finder for finder in sys.meta_path if getattr(finder, "__name__", "") == "BuiltinImporter"]
    sys.meta_path.append(_Missing)
    sys.stdin = sys.__stdin__ = io.StringIO()
    sys.argv = ["program.py"]


def close_files():
    """Takes the files away too."""
    _replace(_FILES, _no_files)
    _replace(_STATS, _no_file)
    builtins.open = io.open = io.FileIO = io.open_code = _no_files
    sys.modules["_io"].open = sys.modules["_io"].FileIO = sys.modules["_io"].open_code = _no_files
    sys.addaudithook(_audit)


def _audit(event, _arguments):
    """Calls that the C code of the library makes by itself, such as the look for the source of a line with an error."""
    if event in _AUDITED or event.startswith(("socket.", "subprocess.", "os.", "ctypes.", "shutil.", "tempfile.")):
        raise PermissionError(f"the sandbox has nothing for `{event}`")


_AUDITED = frozenset(("open", "import_file"))


def _no_input(prompt=""):
    raise EOFError("nothing can be typed in: the program has no standard input")


class _Missing:
    """Says why a module is not there."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        top = name.partition(".")[0]
        kind = "is not part of the sandbox" if top in sys.stdlib_module_names else "is not in the standard library, which is all the sandbox has"
        raise ModuleNotFoundError(f"No module named '{name}': it {kind}", name=name)
