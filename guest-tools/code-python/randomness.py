"""Random numbers of a call's seed: the same seed gives the same run."""

import os
import random

import posix

_source = random.Random(0)


def _urandom(size):
    return _source.randbytes(size)


def begin(seed):
    """The random numbers of a call."""
    _source.seed(seed)
    random.seed(seed)


os.urandom = posix.urandom = random._urandom = _urandom


class _Random(random.Random):
    def __init__(self, x=None):
        super().__init__(_source.getrandbits(64) if x is None else x)

    def seed(self, a=None, version=2):
        super().seed(_source.getrandbits(64) if a is None else a, version)


_Random.__name__ = _Random.__qualname__ = "Random"
_Random.__module__ = "random"
random.Random = _Random
random._inst = _shared = _Random(0)
for _name in random.__all__:
    if hasattr(_shared, _name) and not isinstance(getattr(random, _name), type):
        setattr(random, _name, getattr(_shared, _name))
