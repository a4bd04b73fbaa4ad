"""The tool `count` in Python."""

import re
from collections import Counter

from componentize_py_types import Err
from wit_world import exports


class Words(exports.Words):
    def count(self, text: str) -> list[tuple[str, int]]:
        words = re.findall(r"\w+", text.lower())
        if not words:
            raise Err("there are no words")
        return sorted(Counter(words).items(), key=lambda item: (-item[1], item[0]))
