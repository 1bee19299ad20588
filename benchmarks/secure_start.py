"""Promise: `ottla serve --secure` to a first record in under 5 s.

The commands of docs/security.md as a new user types them, one after the other, each a process of
its own: a broker in an empty directory makes its authority and its administrator, then a topic is
created, a record written and read. The clock runs from the first command to the record on the
screen. Modules are compiled before, as pip compiles what it installs.

    python -m benchmarks.secure_start [--rounds N]
"""

from __future__ import annotations

import argparse
import compileall
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import ottla
from tools import nodes

GOAL_S: Final = 5.0
OTTLA: Final = (sys.executable, "-m", "ottla")
RECORD: Final = "hello"


class Taken(NamedTuple):
    """Seconds since the first command, and CPU seconds of all processes together."""

    ready: float
    read: float
    cpu: float


def first_record(folder: Path) -> Taken:
    [port] = nodes.free_ports(1)
    serve = ["serve", "--secure", "security", "--listeners", f"SASL_SSL://localhost:{port}"]
    client = [*OTTLA, "--command-config", "security/client.properties"]
    before, began = _cpu_s(), time.perf_counter()
    with subprocess.Popen(
        [*OTTLA, *serve, "--data-dir", "data"], cwd=folder, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as broker:  # fmt: skip
        try:
            assert broker.stdout is not None
            line = broker.stdout.readline()
            assert "ready" in line, line
            ready = time.perf_counter() - began
            for command, given in (("topics create orders", ""), ("produce orders", RECORD)):
                subprocess.run(
                    [*client, *command.split()], cwd=folder, input=given, text=True, check=True,
                    capture_output=True,
                )  # fmt: skip
            with subprocess.Popen(
                [*client, "consume", "orders"], cwd=folder, stdout=subprocess.PIPE, text=True
            ) as consumer:
                assert consumer.stdout is not None
                line = consumer.stdout.readline()
                read = time.perf_counter() - began
                consumer.terminate()
            assert RECORD in line, line
        finally:
            broker.terminate()
    return Taken(ready, read, _cpu_s() - before)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(args: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.secure_start")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(args)
    compileall.compile_dir(Path(ottla.__file__).parent, quiet=1)
    taken = []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix="ottla-secure-") as name:
            taken.append(first_record(Path(name)))
        print(
            f"serve --secure: ready after {taken[-1].ready:.2f} s, first record read after "
            f"{taken[-1].read:.2f} s; {taken[-1].cpu:.2f} s of CPU",
            flush=True,
        )
    met = median(each.read for each in taken) < GOAL_S
    print(f"first record in under {GOAL_S:g} s: {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
