"""A check of our own for schemathesis."""

import schemathesis
import schemathesis.python.asgi  # schemathesis imports it when its stack is deep, which Python 3.11 does not survive  # noqa: F401

# The beginnings of refusals by the readers of requests, in `host/interfaces/src/http/reply.rs`.
READERS = ("the body is refused", "the query is refused", "the path is refused", "this endpoint takes no query")
# The grammar of patterns of requests is more than a schema can say.
GRAMMAR = "is no shape of requests"


@schemathesis.check
def readers_take_what_schemas_allow(context, response, case):
    """A request that fits its schema may be refused for its meaning, and never because it cannot be read."""
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code != 400:
        return
    detail = response.json().get("detail", "")
    assert GRAMMAR in detail or not detail.startswith(READERS), f"a request that fits its schema was not read: {detail}"
