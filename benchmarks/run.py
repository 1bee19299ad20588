"""`make bench`: Apache Kafka and Ottla in turns, with the same clients, on this machine, now.

Owns: the order of things. Both brokers run all the time and take turns scenario by scenario and
round by round, whoever was first is last in the next round, so that what disturbs the machine
disturbs both. The JVM is warmed before anything counts.

    python -m benchmarks [--full] [--only WORD] [--rounds N] [--json FILE] [--folder DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import (
    ceilings,
    cluster,
    compaction_latency,
    groups,
    latency,
    loading,
    logins,
    partitions_10k,
    quotas,
    report,
    small_requests,
    start,
    testing_broker,
    throughput,
    tls,
    transactions,
)
from benchmarks.contenders import Contender, rss_mb, running
from benchmarks.scenario import DEFAULT, Scenario
from tools import kafka_cache

PROMISES: Final = (start, throughput, small_requests, latency)
ALONE: Final = (  # brokers of their own
    testing_broker,
    partitions_10k,
    compaction_latency,
    groups,
    transactions,
    loading,
    quotas,
)
IN_ROUNDS: Final = (cluster, tls, logins)  # brokers of their own, one round unless --full
ON_SPARK: Final = (
    ("spark_io",),
    ("pipeline_start",),
    ("spark_growth", "partitions"),
    ("spark_growth", "size"),
)
"""Each in a process of its own: a JVM keeps its heap and what it has compiled."""
_WARM_TURNS: Final = 6  # loads of a gigabyte; then the JVM's rate has settled


def main(args: Sequence[str]) -> int:
    options = _options(args)
    try:
        kafka_cache.jars("server")  # fetch before the clock of anything runs
    except kafka_cache.Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    chosen = [one for one in _scenarios(options.full) if options.only in one.name]
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="ottla-bench-") as folder:
        machine = ceilings.measure(Path(folder))
        _say_machine(machine)
        with running(Path(folder)) as contenders:
            _warm(contenders)
            rows = [row for one in chosen for row in _measured(one, contenders, options.rounds)]
            rows += _loaded_memory(contenders)
    text = report.table(rows)
    print(f"\n{text}\n")
    for missed in (row for row in rows if "MISSED" in row.verdict):
        print(f"goal missed: {missed.scenario}: {missed.metric}")
    _keep(options.json, machine, rows)
    rounds = 3 if options.full else 1
    for in_rounds in () if options.only else IN_ROUNDS:
        _say(f"{in_rounds.__name__}:")
        in_rounds.main(["--rounds", str(rounds)])
    for promise in ALONE if options.full else ():
        _say(f"{promise.__name__}:")
        promise.main()
    for name, *words in ON_SPARK if options.full and not options.only else ():
        _say(f"benchmarks.{name} {' '.join(words)}:")
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *words], check=True)
    return 0


def _options(args: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks")
    parser.add_argument("--full", action="store_true", help="run every scenario, five rounds")
    parser.add_argument("--only", default="", help="run only scenarios whose name contains this")
    parser.add_argument("--rounds", type=int, help="set the rounds of each contender")
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks.json"))
    parser.add_argument("--folder", help="write data here; default: the temporary folder")
    options = parser.parse_args(args)
    options.rounds = options.rounds or (5 if options.full else 3)
    return options


def _scenarios(full: bool) -> Iterator[Scenario]:
    for promise in PROMISES:
        yield from promise.scenarios(full)


def _warm(contenders: Sequence[Contender]) -> None:
    """The same work for both: the JVM compiles its hot paths, Ottla fills its caches."""
    for contender in contenders:
        if contender.name == DEFAULT:
            continue  # the same process as Ottla's other face
        _say(f"warming {contender.name}")
        for _ in range(_WARM_TURNS):
            with contender.topic(12) as topic:
                load = {"topic": topic, "partitions": 12, "size": 1000, "connections": 4}
                contender.drive("raw", do="produce", bytes=500_000_000, acks=1, **load)
                contender.drive("raw", do="consume", acks=1, **load)
        with contender.topic(10) as topic:
            load = {"topic": topic, "partitions": 10, "size": 100, "connections": 10}
            contender.drive("raw", do="small", acks=1, in_flight=5, seconds=5, **load)


def _measured(
    scenario: Scenario, contenders: Sequence[Contender], rounds: int
) -> Iterator[report.Row]:
    turns: dict[str, list[Any]] = {name: [] for name in scenario.contenders}
    taking_part = [one for one in contenders if one.name in scenario.contenders]
    for number in range(rounds):
        shift = number % len(taking_part)
        for contender in taking_part[shift:] + taking_part[:shift]:
            turns[contender.name].append(scenario.measure(contender))
    for row in report.rows(scenario.name, turns):
        _say(report.table([row]).splitlines()[-1])
        yield row


def _loaded_memory(contenders: Sequence[Contender]) -> Iterator[report.Row]:
    """The most that each broker's process held in the whole run."""
    peaks = {
        one.name: [{"peak MB": rss_mb(one.node.pid, peak=True)}]
        for one in contenders
        if one.name != DEFAULT
    }
    yield from report.rows("memory under all of this", peaks)


def _keep(path: Path, machine: dict[str, float], rows: Sequence[report.Row]) -> None:
    kept = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "kafka": kafka_cache.KAFKA,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "ceilings": machine,
        "rows": report.as_json(rows),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1) + "\n")
    _say(f"results in {path}")


def _say_machine(machine: dict[str, float]) -> None:
    for name, value in machine.items():
        _say(f"ceiling: {name} {report.number(value)}")


def _say(text: str) -> None:
    print(text, flush=True)
