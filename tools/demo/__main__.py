"""`python -m tools.demo [SECONDS]`: a broker, two clients, and a pipeline on Spark.

Owns: a broker process and a folder; both are gone afterwards, and nothing is written elsewhere but
the table and the picture, whose places are told. With a number of seconds it ends by itself, 0
leaves the pipeline out; without one it runs until Ctrl-C. Without Java the pipeline is left out
too, and that is said.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.demo.interrupts import Interrupts
from tools.demo.seconds import Mistake, seconds_of

NEXT: Final = """\
Next: .venv/bin/ottla pipeline new views   a pipeline (docs/pipelines.md)
      .venv/bin/ottla serve                a broker (docs/quickstart.md)"""


def main(arguments: Sequence[str]) -> int:
    try:
        seconds = seconds_of(arguments)
    except Mistake as mistake:
        print(f"demo: {mistake}", file=sys.stderr)
        return 2
    interrupts = Interrupts()
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, lambda *_: interrupts.add())
    with tempfile.TemporaryDirectory(prefix="ottla-demo-") as folder:
        here = Path.cwd()
        os.chdir(folder)  # Spark, and Hypothesis when kio imports it, write where they are started
        try:
            return _shown(Path(folder), seconds, interrupts)
        finally:
            os.chdir(here)


def _shown(folder: Path, seconds: float | None, interrupts: Interrupts) -> int:
    from tools import nodes
    from tools.demo import clients

    began = time.monotonic()
    with nodes.ottla(folder / "broker") as node:
        ready, _, _ = node.said.read_text().splitlines()[-1].partition(", data in ")
        print(f"{ready} ({time.monotonic() - began:.2f} s), and two clients use it:")
        if not clients.show(node.bootstrap):
            print("demo: records are missing", file=sys.stderr)
            return 1
        is_equal = seconds == 0 or _pipeline(node.bootstrap, folder, seconds, interrupts)
        if is_equal is False:
            print("demo: the records read differ from the records written", file=sys.stderr)
            return 1
    print(NEXT if is_equal is None else f"Every record was written and read.\n{NEXT}")
    return 0


def _pipeline(
    bootstrap: str, folder: Path, seconds: float | None, interrupts: Interrupts
) -> bool | None:
    """Whether everything came out; None if it was ended before that could be known, and True where
    there is no Java to run it on."""
    from ottla.model.errors import UserError
    from ottla.spark.pipelines.java import check_java

    try:
        check_java(os.environ)
    except UserError as lacking:
        print(f"The second part, a pipeline on Spark, is skipped: {lacking}", flush=True)
        return True
    from ottla.spark.pipelines.running_queries import QueryFailed
    from tools.demo import shop

    how_long = "until Ctrl-C" if seconds is None else f"for {seconds:.0f} s"
    print(f"A shop opens {how_long}, with a pipeline on Spark (about 10 s to start).", flush=True)
    try:
        return shop.show(bootstrap, folder / "shop", seconds, interrupts)
    except QueryFailed as failure:
        print(f"demo: {failure}", file=sys.stderr)
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
