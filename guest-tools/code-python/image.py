"""Lays the memory of the snapshot out so that a call writes to few pages of it, and to few that lie apart: a fresh instance pays for each."""

import array
import gc
import sys
import types

# A reference count that the interpreter never changes (PEP 683).
_IMMORTAL = 5 << 28
# So many blocks that follow one another are new ones, and so many are looked for at most.
_ROW = 32
_MOST = 50_000
# So many times a program is run before the interpreter has settled how it runs its code.
_RUNS = 20

# The objects that fill the heap, and the list that `fuse` reads.
_kept = []
_words = None


def settle(run):
    """Lays out the memory that a call like `run` needs. Comes last: objects that are made later lie apart."""
    for _ in range(2):
        # A run gives up the objects that the one before it left.
        run()
        gc.collect()
        _fill()
    _together(run)
    for _ in range(_RUNS):
        run()
    gc.collect()
    _keep()
    # A collection of a call looks at what the call made, and not at the library.
    gc.freeze()


def _fill():
    """Fills the places that earlier objects left, the large ones first, so that a call takes new ones, which lie together."""
    for make in _makers():
        row = before = 0
        for _ in range(_MOST):
            thing = make()
            _kept.append(thing)
            row = row + 1 if 0 < id(thing) - before < sys.getsizeof(thing) + 32 else 0
            before = id(thing)
            if row == _ROW:
                break


def _makers():
    """Makes objects of every size of block, and of the types of which the interpreter keeps old ones for new ones."""
    # Not of zeros: a snapshot is cut into pieces at zeros.
    sizes = [lambda size=size: b"\1" * (size - 21) for size in (16384, 8192, 4096, 2048, 1024, 512, *range(256, 31, -16))]
    tuples = [lambda size=size: tuple(range(size)) for size in range(1, 21)]
    others = [object, lambda: 2.5 * len(_kept), lambda: len(_kept) + (1 << 29), list, dict, lambda: {1: 1}, lambda: [1], set]
    return sizes + tuples + others


def _together(run):
    """Copies the code that a call runs to one place: the interpreter counts in it."""
    ran = {}

    def note(frame, event, _):
        if event == "call":
            ran[id(frame.f_code)] = frame.f_code

    sys.setprofile(note)
    run()
    sys.setprofile(None)
    for thing in gc.get_objects():
        if type(thing) is types.FunctionType and id(thing.__code__) in ran:
            thing.__code__ = thing.__code__.replace()


def _keep():
    """Lists the reference counts of all objects, for `fuse` to make them immortal: a call that uses an object then does not write to it."""
    global _words
    found = _everything()
    # Its mark must stand nowhere else in memory, so it is made here, word by word.
    _words = array.array("I", bytes(4 * (6 + len(found))))
    for place, word in enumerate((0x6F746F4D, 0x726F4372, 0x57786574, 0x7364726F, _IMMORTAL, len(found), *map(id, found))):
        _words[place] = word
    _kept.append(found)


def _everything():
    """All objects, found from those that the collector knows."""
    seen = bytearray(1 << 20)

    def is_new(thing):
        byte, bit = divmod(id(thing) >> 3, 8)
        known = seen[byte] >> bit & 1
        seen[byte] |= 1 << bit
        return not known

    found = list(filter(is_new, gc.get_objects()))
    for thing in found:
        parts = gc.get_referents(thing)
        if type(thing) is types.CodeType:
            # The collector does not look into code.
            parts += [thing.co_consts, thing.co_names, thing.co_filename, thing.co_name, thing.co_qualname]
            parts += [thing.co_linetable, thing.co_exceptiontable, *thing.co_varnames, *thing.co_cellvars, *thing.co_freevars]
        found += filter(is_new, parts)
    return found
