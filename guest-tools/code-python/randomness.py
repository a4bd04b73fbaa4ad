"""Random numbers of a call's seed: the same seed gives the same run."""

import os
import random

import posix

_source = random.Random(0)
# The seed of the call, and that of `_source` until it is asked: few programs do, and seeding takes as long as they run.
_call_seed = _seed = None


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
    global _call_seed, _seed
    _call_seed = _seed = seed


os.urandom = posix.urandom = random._urandom = _urandom


class _Random(random.Random):
    def __init__(self, x=None):
        super().__init__(_seeded().getrandbits(64) if x is None else x)

    def seed(self, a=None, version=2):
        super().seed(_seeded().getrandbits(64) if a is None else a, version)


_Random.__name__ = _Random.__qualname__ = "Random"
_Random.__module__ = "random"
random.Random = _Random

# The functions of the module are methods of one object. It is seeded with the call's seed when a program first asks for one of them.
_shared = _Random(0)
_offered = dir(random)
_names = [name for name in _offered if getattr(getattr(random, name), "__self__", None) is random._inst]
for _name in ("_inst", *_names):
    delattr(random, _name)


def _first_asked(name):
    if name != "_inst" and name not in _names:
        raise AttributeError(f"module 'random' has no attribute {name!r}")
    del random.__getattr__, random.__dir__
    if random.seed is _seed_later:
        del random.seed
    _shared.seed(_call_seed)
    random._inst = _shared
    for known in _names:
        vars(random).setdefault(known, getattr(_shared, known))
    return getattr(random, name)


def _seed_later(a=None, version=2):
    """`random.seed` until then. The toolchain calls it at the begin of each call, without a seed."""
    if a is not None:
        _first_asked("seed")(a, version)


random.seed = _seed_later
random.__getattr__ = _first_asked
random.__dir__ = lambda: _offered
