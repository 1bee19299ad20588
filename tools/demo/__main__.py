"""`python -m tools.demo [SECONDS]`: a broker, two clients, and a pipeline on Spark.

Owns: a broker process and a folder; both are gone afterwards. With a number of seconds it ends by
itself, 0 leaves the pipeline out; without one it runs until Ctrl-C.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tools import nodes
from tools.demo import clients


def main(arguments: Sequence[str]) -> int:
    seconds = float(arguments[0]) if arguments and arguments[0] else None
    stop = threading.Event()
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, lambda *_: stop.set())
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="ottla-demo-") as folder,
        nodes.ottla(Path(folder) / "broker") as node,
    ):
        print(f"{node.said.read_text().splitlines()[-1]} ({time.monotonic() - began:.2f} s)")
        if not clients.show(node.bootstrap):
            print("demo: records are missing", file=sys.stderr)
            return 1
        if seconds != 0 and not _pipeline(node.bootstrap, Path(folder), seconds, stop):
            print("demo: what came out is not what went in", file=sys.stderr)
            return 1
    print("Every record was written and read. Start a broker of your own: .venv/bin/ottla serve")
    return 0


def _pipeline(bootstrap: str, folder: Path, seconds: float | None, stop: threading.Event) -> bool:
    from tools.demo import shop

    how_long = "until Ctrl-C" if seconds is None else f"for {seconds:.0f} s"
    print(f"A shop opens: events come in and a pipeline on Spark runs {how_long}.", flush=True)
    return shop.show(bootstrap, folder / "shop", seconds, stop)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
