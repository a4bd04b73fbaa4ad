"""The program's clock: it starts where the call says and moves on a little with each look."""

import datetime
import time

# Nanoseconds that the clock moves on with each look, so that a program which waits for time to pass gets there.
_LOOK = 10_000

_start = 0
_now = 0


def _look():
    global _now
    _now += _LOOK
    return _now


def sleep(seconds):
    """Moves the clock on."""
    global _now
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    _now += int(seconds * 1_000_000_000)


def monotonic():
    return (_look() - _start) / 1_000_000_000


def _monotonic_ns():
    return _look() - _start


def _time():
    return _look() / 1_000_000_000


def begin(now_ms):
    """The clock of a call."""
    global _start, _now
    _start = _now = now_ms * 1_000_000


_gmtime, _localtime, _strftime, _ctime, _asctime = time.gmtime, time.localtime, time.strftime, time.ctime, time.asctime

time.time = _time
time.time_ns = _look
time.monotonic = time.perf_counter = time.process_time = time.thread_time = monotonic
time.monotonic_ns = time.perf_counter_ns = time.process_time_ns = time.thread_time_ns = _monotonic_ns
time.sleep = sleep
time.gmtime = lambda seconds=None: _gmtime(_time() if seconds is None else seconds)
time.localtime = lambda seconds=None: _gmtime(_time() if seconds is None else seconds)
time.ctime = lambda seconds=None: _ctime(_time() if seconds is None else seconds)
time.asctime = lambda moment=None: _asctime(time.gmtime() if moment is None else moment)
time.strftime = lambda form, moment=None: _strftime(form, time.gmtime() if moment is None else moment)


_DateTime, _Date = datetime.datetime, datetime.date


class _DateTimeMeta(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, _DateTime)

    def __subclasscheck__(cls, subclass):
        return issubclass(subclass, _DateTime)


class _DateMeta(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, _Date)

    def __subclasscheck__(cls, subclass):
        return issubclass(subclass, _Date)


class _VirtualDateTime(_DateTime, metaclass=_DateTimeMeta):
    @classmethod
    def now(cls, tz=None):
        if tz is not None:
            return super().fromtimestamp(_time(), tz)
        return super().fromtimestamp(_time(), datetime.UTC).replace(tzinfo=None)

    @classmethod
    def utcnow(cls):
        return cls.now()

    @classmethod
    def today(cls):
        return cls.now()

    def __new__(cls, *arguments, **named):
        return _DateTime.__new__(_DateTime if cls is _VirtualDateTime else cls, *arguments, **named)


class _VirtualDate(_Date, metaclass=_DateMeta):
    @classmethod
    def today(cls):
        return _VirtualDateTime.now().date()

    def __new__(cls, *arguments, **named):
        return _Date.__new__(_Date if cls is _VirtualDate else cls, *arguments, **named)


for _virtual, _name in ((_VirtualDateTime, "datetime"), (_VirtualDate, "date")):
    _virtual.__name__ = _virtual.__qualname__ = _name
    _virtual.__module__ = "datetime"
    setattr(datetime, _name, _virtual)

_info = time.get_clock_info("time")
time.get_clock_info = lambda name: _info
