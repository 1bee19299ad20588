"""Which tests were skipped, and why: counted by suite and reason, told at the end of a run.

Owns: the files in the folder that `TEST_SKIPS` names, one for each run of pytest, and the lines
that tell of them. Never: decides what is skipped.

    python -m tools.skips FOLDER    tells what every run has left there
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = "TEST_SKIPS"
PREFIX: Final = "skipped:"
"""How every line begins, so that it can be found among others."""
REASON_CHARS: Final = 160


class Skip(NamedTuple):
    """Tests of one suite that were skipped for one reason."""

    suite: str
    reason: str
    missing: bool
    """A client, a jar or a program is not there: with CI set it would be a failure."""


def is_ci(environment: Mapping[str, str]) -> bool:
    """Whether this is a run that must not leave anything out."""
    return environment.get("CI", "").lower() not in ("", "0", "false", "no")


def skip(path: str, reason: str, *, missing: bool) -> Skip:
    """A skipped test, by the file that it is in and what was said."""
    parts = Path(path).parts
    suite = parts[1] if len(parts) > 2 and parts[0] == "tests" else parts[0]
    lines = [line.strip() for line in reason.removeprefix("Skipped: ").splitlines() if line.strip()]
    text = lines[0] if len(lines) < 2 else f"{lines[0]} {_worst(lines)}"
    return Skip(suite, text[:REASON_CHARS], missing)


def _worst(lines: Sequence[str]) -> str:
    """Of what a program said: its first error, or else its last word."""
    return next((line for line in lines if "ERROR" in line), lines[-1])


def lines(counted: Mapping[Skip, int]) -> list[str]:
    """What is told of them; nothing if there are none."""
    if not counted:
        return []
    missing = sum(count for skip, count in counted.items() if skip.missing)
    text = f"{missing} because a client, a jar or a program is missing; with CI set they would fail"
    report = [
        f"{PREFIX} {sum(counted.values())} tests, {text if missing else 'nothing is missing'}"
    ]
    for skip, count in sorted(counted.items(), key=lambda each: (not each[0].missing, each[0])):
        report.append(f"{PREFIX} {count:5} {skip.suite}: {skip.reason}")
    return report


def keep(counted: Mapping[Skip, int], folder: Path) -> None:
    """Write them to the folder, for the report on all runs."""
    rows = [[*skip, count] for skip, count in counted.items()]
    (folder / f"{os.getpid()}.json").write_text(json.dumps(rows))


def read_all(files: Iterable[Path]) -> Counter[Skip]:
    """The skips of all runs."""
    total: Counter[Skip] = Counter()
    for file in files:
        for suite, reason, missing, count in json.loads(file.read_text()):
            total[Skip(suite, reason, missing)] += count
    return total


def main(arguments: Sequence[str]) -> int:
    report = lines(read_all(sorted(Path(arguments[0]).glob("*.json"))))
    print("\n".join(report or [f"{PREFIX} no test"]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
