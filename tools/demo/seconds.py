"""For how long the demo runs, as `make run SECONDS=…` has it.

Owns: reading the number. Needs no package: `make run` asks before it makes an environment.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence


class Mistake(Exception):
    """What was given is no number of seconds."""


def seconds_of(arguments: Sequence[str]) -> float | None:
    """The number of seconds; None: until Ctrl-C."""
    text = " ".join(arguments).strip()
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise Mistake(f"SECONDS={text}: expected a number of seconds, such as SECONDS=60")
    return number


def main(arguments: Sequence[str]) -> int:
    try:
        seconds_of(arguments)
    except Mistake as mistake:
        print(f"demo: {mistake}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
