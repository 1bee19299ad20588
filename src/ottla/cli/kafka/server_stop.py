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
STARTS: Final = ("serve", "kafka-server-start.sh")
MODULES: Final = ("ottla", "ottla.cli.main", "ottla.cli.kafka.main")


class Process(NamedTuple):
    """A process, the words it was started with, and where."""

    id: int
    words: tuple[str, ...]
    directory: Path = Path("/")


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
    """Those that are `ottla serve`, `python -m ottla serve` or kafka-server-start.sh; of one file,
    if it is given."""
    for process in running:
        start = next((word for word in process.words if word in STARTS), None)
        if start is None or not any(_is_ottla(word) for word in process.words):
            continue
        served = process.words[process.words.index(start) + 1 :]
        files = ((process.directory / word).resolve() for word in served)
        if file is None or file.resolve() in files:
            yield process


def _is_ottla(word: str) -> bool:
    return word in MODULES or Path(word).name == "ottla"


def processes() -> Iterator[Process]:
    """Every process of this user."""
    for folder in PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if folder.stat().st_uid != os.getuid():
                continue
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            directory = (folder / "cwd").readlink()
        except OSError:
            continue  # it has ended meanwhile
        yield Process(int(folder.name), tuple(words[:-1]), directory)


def _parser() -> Arguments:
    parser = Arguments("kafka-server-stop.sh", "Stop brokers gracefully.")
    parser.add_argument("file", nargs="?", type=Path, metavar="server.properties")
    return parser
