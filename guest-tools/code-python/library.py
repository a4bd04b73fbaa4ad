"""The standard library, imported before the snapshot: programs import from it, and there are no files to import from."""

import importlib
import io
import pkgutil
import sys
import warnings

# Those that have no use without a screen, a machine or other programs, or that do something when they are imported.
_LEFT_OUT = {
    "antigravity", "this", "idlelib", "tkinter", "turtle", "turtledemo", "test", "lib2to3", "ensurepip", "venv", "pydoc_data",
    "distutils", "curses", "dbm", "multiprocessing", "ctypes", "pydoc", "webbrowser", "msilib", "nt", "winreg", "__main__",
    "sqlite3", "ssl", "pty", "tty", "pip", "_pyrepl", "_android_support", "_apple_support", "_ios_support", "_aix_support",
    "_osx_support", "_scproxy", "_winapi", "_overlapped", "_wmi", "_tkinter", "_curses", "_curses_panel", "_dbm", "_gdbm", "__hello__",
    "__phello__",
}
_PACKAGES = ("asyncio", "collections", "concurrent.futures", "email", "email.mime", "encodings", "html", "http", "importlib", "json", "logging",
             "string", "unittest", "urllib", "wsgiref", "xml", "xml.dom", "xml.etree", "xml.sax", "zoneinfo", "tomllib", "re", "statistics", "compression", "pathlib", "sysconfig")

missing = []


def _bring(name):
    try:
        importlib.import_module(name)
    except BaseException as error:  # Some need a machine.
        missing.append(f"{name}: {error!r}")


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for _name in sorted(sys.stdlib_module_names):
        if _name not in _LEFT_OUT:
            _bring(_name)
    for _package in _PACKAGES:
        _found = sys.modules.get(_package)
        for _module in pkgutil.iter_modules(getattr(_found, "__path__", [])):
            if _module.name not in ("__main__", "windows_events", "windows_utils"):
                _bring(f"{_package}.{_module.name}")

# Time zones, which `zoneinfo` would read from files.
_zones = {}
try:
    import tzdata
except ModuleNotFoundError:
    missing.append("tzdata")
else:
    import importlib.resources

    _root = importlib.resources.files("tzdata").joinpath("zoneinfo")
    for _zone in importlib.resources.files("tzdata").joinpath("zones").read_text().split():
        _zones[_zone] = _root.joinpath(*_zone.split("/")).read_bytes()


def _load_tzdata(key):
    if key not in _zones:
        raise sys.modules["zoneinfo"].ZoneInfoNotFoundError(f"No time zone found with key {key}")
    return io.BytesIO(_zones[key])


sys.modules["zoneinfo._common"].load_tzdata = _load_tzdata
sys.modules["zoneinfo"]._common.load_tzdata = _load_tzdata
sys.modules["zoneinfo"]._tzpath.TZPATH = ()
sys.modules["zoneinfo"].available_timezones = lambda: set(_zones)
