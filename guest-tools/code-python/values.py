"""Values of programs as JSON."""

import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import math
import uuid

MAX_DEPTH = 64


def _key(key):
    if isinstance(key, str):
        return str(key)
    if key is None or isinstance(key, (bool, int, float)):
        return json.dumps(key) if not isinstance(key, float) else repr(key)
    return str(key)


def _plain(value, depth):
    """The value in the types that JSON has. What it has no type for is a string, so that nothing is lost as an error."""
    if depth > MAX_DEPTH:
        return repr(value)
    if isinstance(value, enum.Enum):
        return _plain(value.value, depth + 1)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value).encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, int):
        # Larger ones lose digits in readers that know doubles only.
        return int(value) if abs(value) <= 2**53 else str(int(value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict(), depth + 1)
    if isinstance(value, dict):
        return {_key(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        items = [_plain(item, depth + 1) for item in value]
        try:
            return sorted(items)
        except TypeError:
            return items
    if isinstance(value, (list, tuple, range, collections.deque, array.array, map, filter, zip)):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, (type({}.keys()), type({}.values()), type({}.items()))):
        return [_plain(item, depth + 1) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name), depth + 1) for field in dataclasses.fields(value)}
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (decimal.Decimal, fractions.Fraction, uuid.UUID, datetime.timedelta)):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "backslashreplace")
    return repr(value)


_encode = json.encoder.c_make_encoder(None, None, json.encoder.encode_basestring, None, ": ", ", ", False, False, False)


def to_json(value):
    """JSON text of a value."""
    return "".join(_encode(_plain(value, 0), 0))


def bounded(text, most):
    """The text, or its beginning with a marker in at most `most` bytes."""
    # A character takes at most four bytes.
    if len(text) * 4 <= most:
        return text, False
    data = text.encode("utf-8")
    if len(data) <= most:
        return text, False
    marker = f"…[truncated: {len(data)} bytes]"
    room = most - len(marker.encode("utf-8"))
    if room < 0:
        return data[:most].decode("utf-8", "ignore"), True
    return data[:room].decode("utf-8", "ignore") + marker, True
