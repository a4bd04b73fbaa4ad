"""Tools for the world `tool` of `motor:host`: the component names them itself."""

import json
import socket
import statistics

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import log, types

PARAMETERS = {
    "type": "object",
    "properties": {"numbers": {"type": "array", "items": {"type": "number"}}},
    "required": ["numbers"],
    "additionalProperties": False,
}


class Tools(exports.Tools):
    def list(self):
        return [
            types.ToolDescription("median", "Computes the median.", json.dumps(PARAMETERS), None, None),
            types.ToolDescription("connect", "Opens a socket.", json.dumps({"type": "object"}), None, None),
        ]

    def call(self, name, arguments, context):
        if name == "connect":
            return types.ToolOutput(repr(socket.socket()))
        numbers = json.loads(arguments)["numbers"]
        if not numbers:
            raise Err(types.ToolError_BadInput("`numbers` is empty"))
        log.write(log.Level.INFO, f"{len(numbers)} numbers")
        return types.ToolOutput(json.dumps(statistics.median(numbers)))
