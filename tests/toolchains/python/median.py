"""A tool for the world `tool` of `motor:host`: it names its tools itself."""

import json
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
        effects = types.Effects(read_only=True, destructive=False, idempotent=True, open_world=False)
        return [types.ToolDescription("median", "Computes the median.", json.dumps(PARAMETERS), None, effects)]

    def call(self, name, arguments, context):
        numbers = json.loads(arguments)["numbers"]
        if not numbers:
            raise Err(types.ToolError_BadInput("`numbers` is empty"))
        log.write(log.Level.INFO, f"{len(numbers)} numbers")
        return types.ToolOutput(json.dumps(statistics.median(numbers)))
