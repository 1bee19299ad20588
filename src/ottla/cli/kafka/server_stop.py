"""kafka-server-stop.sh: asks brokers on this machine to stop, with SIGTERM.

As Kafka's script it stops every broker that this user runs; with the name of its properties file,
only the one that was started with it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ottla.cli.kafka.arguments import Arguments

PROC: Final = Path("/proc")


class Process(NamedTuple):
    """A process, and the words it was started with."""

    id: int
    words: tuple[str, ...]


def run(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    found = list(brokers(processes(), options.file))
    if not found:
        print("No kafka server to stop", file=sys.stderr)
        return 1
    for process in found:
        os.kill(process.id, signal.SIGTERM)
    return 0


def brokers(running: Iterable[Process], file: Path | None) -> Iterator[Process]:
    """Those that are `ottla serve`, or `python -m ottla serve`; of one file, if it is given."""
    for process in running:
        words = process.words
        if "serve" not in words or not any(_is_ottla(word) for word in words):
            continue
        served = words[words.index("serve") + 1 :]
        if file is None or str(file.resolve()) in served:
            yield process


def _is_ottla(word: str) -> bool:
    return word in ("ottla", "ottla.cli.main") or Path(word).name == "ottla"


def processes() -> Iterator[Process]:
    """Every process of this user."""
    for folder in PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if folder.stat().st_uid != os.getuid():
                continue
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # it has ended meanwhile
        yield Process(int(folder.name), tuple(words[:-1]))


def _parser() -> Arguments:
    parser = Arguments("kafka-server-stop.sh", "Stop brokers gracefully.")
    parser.add_argument("file", nargs="?", type=Path, metavar="server.properties")
    return parser
