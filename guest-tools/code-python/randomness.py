"""Random numbers of a call's seed: the same seed gives the same run."""

import os
import random

import posix

_source = random.Random(0)
# The seed of `_source` until it is asked: few programs do, and seeding takes as long as they run.
_seed = None


def _seeded():
    global _seed
    if _seed is not None:
        _source.seed(_seed)
        _seed = None
    return _source


def _urandom(size):
    return _seeded().randbytes(size)


def begin(seed):
    """The random numbers of a call."""
    global _seed
    _seed = seed
    random.seed(seed)


os.urandom = posix.urandom = random._urandom = _urandom


class _Random(random.Random):
    def __init__(self, x=None):
        super().__init__(_seeded().getrandbits(64) if x is None else x)

    def seed(self, a=None, version=2):
        super().seed(_seeded().getrandbits(64) if a is None else a, version)


_Random.__name__ = _Random.__qualname__ = "Random"
_Random.__module__ = "random"
random.Random = _Random
random._inst = _shared = _Random(0)
for _name in random.__all__:
    if hasattr(_shared, _name) and not isinstance(getattr(random, _name), type):
        setattr(random, _name, getattr(_shared, _name))
