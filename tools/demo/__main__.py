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
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.demo.seconds import Mistake, seconds_of

NEXT: Final = """\
Next: .venv/bin/ottla pipeline new views    a pipeline of your own; docs/pipelines.md
      .venv/bin/ottla serve                 a broker of your own; docs/quickstart.md"""


def main(arguments: Sequence[str]) -> int:
    try:
        seconds = seconds_of(arguments)
    except Mistake as mistake:
        print(f"demo: {mistake}", file=sys.stderr)
        return 2
    stop = threading.Event()
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, lambda *_: stop.set())
    with tempfile.TemporaryDirectory(prefix="ottla-demo-") as folder:
        here = Path.cwd()
        os.chdir(folder)  # Spark, and Hypothesis when kio imports it, write where they are started
        try:
            return _shown(Path(folder), seconds, stop)
        finally:
            os.chdir(here)


def _shown(folder: Path, seconds: float | None, stop: threading.Event) -> int:
    from tools import nodes
    from tools.demo import clients

    began = time.monotonic()
    with nodes.ottla(folder / "broker") as node:
        print(f"{node.said.read_text().splitlines()[-1]} ({time.monotonic() - began:.2f} s)")
        if not clients.show(node.bootstrap):
            print("demo: records are missing", file=sys.stderr)
            return 1
        if seconds != 0 and not _pipeline(node.bootstrap, folder, seconds, stop):
            print("demo: the records read differ from the records written", file=sys.stderr)
            return 1
    print(f"Every record was written and read.\n{NEXT}")
    return 0


def _pipeline(bootstrap: str, folder: Path, seconds: float | None, stop: threading.Event) -> bool:
    """Whether everything came out; True where there is no Java to run it on."""
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
    print(f"A shop opens: events come in and a pipeline on Spark runs {how_long}.", flush=True)
    try:
        return shop.show(bootstrap, folder / "shop", seconds, stop)
    except QueryFailed as failure:
        print(f"demo: {failure}", file=sys.stderr)
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
