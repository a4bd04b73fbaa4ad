"""Monty as an opponent: a fresh session of its worker for each program.

Reads one JSON line {code} at a time, prints one JSON line {ms, ok}.
"""

import json
import sys
import time

import pydantic_monty

with pydantic_monty.Monty() as pool:
    for line in sys.stdin:
        code = json.loads(line)["code"]
        start = time.perf_counter()
        with pool.checkout() as session:
            session.feed_run(code)
        print(json.dumps({"ms": (time.perf_counter() - start) * 1e3, "ok": True}), flush=True)
