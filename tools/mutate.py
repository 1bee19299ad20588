"""Whether the tests notice a fault: faults are put into a copy of the source, and tests run on it.

    python -m tools.mutate --count 150 --seed 1 log replica coordinator delay
    python -m tools.mutate --only src/ottla/delay/wheel.py:12 delay

Owns: the copies, the choice of tests and the verdicts. A mutant meets the tests of its own module
first, then a few that name it or belong to modules that import it; it is killed when one of them
fails or does not end.
Never: changes the checkout, or judges a survivor: one that changes nothing anybody could see is
for a person to tell from one that a test is missing for.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import Final, NamedTuple

from tools.mutants import Mutant, mutants, mutated
from tools.mutate_runner import TIMED_OUT

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGES: Final = ("log", "replica", "coordinator", "delay")
PYTEST: Final = (
    *("-q", "-x", "-p", "no:randomly", "-p", "no:cacheprovider"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of what was loaded before the fork
)
INTERRUPTED: Final = 2  # pytest's exit code where a test file cannot be imported
MAX_FILES: Final = 5  # of tests beyond a module's own
KILLED: Final = "killed"
SLOW: Final = "does not end"
SURVIVED: Final = "survived"


class Target(NamedTuple):
    """A mutant of a module, by the module's path below the root."""

    module: str
    mutant: Mutant

    def __str__(self) -> str:
        number, kind, line, text = self.mutant
        return f"{self.module}:{number} line {line}, {kind}: {text}"


def targets(root: Path, packages: Sequence[str]) -> list[Target]:
    """Every mutant of every module that has tests of its own."""
    return [
        Target(module, mutant)
        for package in packages
        for module in _modules(root, package)
        if own_tests(root, module)
        for mutant in mutants((root / module).read_text())
    ]


def _modules(root: Path, package: str) -> list[str]:
    folder = root / "src/ottla" / package
    return [str(path.relative_to(root)) for path in sorted(folder.rglob("*.py"))]


def own_tests(root: Path, module: str) -> list[str]:
    """The test file that mirrors a module."""
    path = Path(module)
    mirrored = Path("tests", *path.parts[2:-1], f"test_{path.name}")
    return [str(mirrored)] if (root / mirrored).exists() else []


def users_tests(root: Path, module: str, packages: Sequence[str]) -> list[str]:
    """Tests that name a module, then those of modules that import it; without its own."""
    name = ".".join(Path(module).with_suffix("").parts[1:])
    package, _, last = name.rpartition(".")
    used = re.compile(
        rf"(import {re.escape(name)}\b|from {re.escape(name)} import"
        rf"|from {re.escape(package)} import (?:[^\n]*\b)?{re.escape(last)}\b)"
    )
    naming = [
        str(path.relative_to(root))
        for package in packages
        for path in sorted((root / "tests" / package).rglob("test_*.py"))
        if used.search(path.read_text())
    ]
    users = [m for p in packages for m in _modules(root, p) if used.search((root / m).read_text())]
    found = [*naming, *(test for user in users for test in own_tests(root, user))]
    own = own_tests(root, module)
    return [test for test in dict.fromkeys(found) if test not in own][:MAX_FILES]


class Bench:
    """A copy of the source in which one mutant at a time stands."""

    def __init__(self, root: Path, folder: Path, timeout_s: float) -> None:
        self._root = root
        self._folder = folder
        self._timeout_s = timeout_s
        self._runner: subprocess.Popen[str] | None = None
        shutil.copytree(root / "src", folder / "src", ignore=shutil.ignore_patterns("*.pyc"))

    def passes(self, tests: Sequence[str]) -> bool | None:
        """Whether these tests pass with the copy; None if they do not end."""
        runner = self._runner
        if runner is None:
            path = os.pathsep.join((str(self._folder / "src"), str(self._root), str(ROOT)))
            runner = self._runner = subprocess.Popen(
                [sys.executable, "-m", "tools.mutate_runner", str(self._timeout_s)],
                cwd=self._root,
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert runner.stdin is not None and runner.stdout is not None
        print(*PYTEST, *tests, sep="\t", file=runner.stdin, flush=True)
        said = runner.stdout.readline().strip()
        if said == TIMED_OUT:
            return None
        if int(said) > INTERRUPTED:
            raise RuntimeError(f"pytest ended with {said} on {' '.join(tests)}")
        return int(said) == 0

    def close(self) -> None:
        if self._runner is not None:
            self._runner.kill()
            self._runner.communicate()

    def verdict(self, target: Target, stages: Sequence[Sequence[str]]) -> str:
        """What becomes of a mutant, once its tests have run."""
        path = self._folder / target.module
        source = path.read_text()
        self._put(path, mutated(source, target.mutant.number))
        try:
            for tests in stages:
                passed = self.passes(tests) if tests else True
                if passed is None:
                    return SLOW
                if not passed:
                    return KILLED
            return SURVIVED
        finally:
            self._put(path, source)

    def _put(self, path: Path, source: str) -> None:
        """Bytecode is told apart by the second it was made in, which is too coarse here."""
        path.write_text(source)
        Path(cache_from_source(str(path))).unlink(missing_ok=True)


def run(
    root: Path, chosen: Sequence[Target], users: Sequence[str], *, jobs: int, timeout_s: float
) -> Iterator[tuple[Target, str]]:
    """Each mutant's verdict, as they come; `users` are the packages whose tests it may meet too."""
    with tempfile.TemporaryDirectory(prefix="mutate-") as temporary:
        free: SimpleQueue[Bench] = SimpleQueue()
        benches = [Bench(root, Path(temporary, str(job)), timeout_s) for job in range(jobs)]
        for bench in benches:
            free.put(bench)

        def judge(target: Target) -> tuple[Target, str]:
            bench = free.get()
            try:
                others = users_tests(root, target.module, users)
                return target, bench.verdict(target, (own_tests(root, target.module), others))
            finally:
                free.put(bench)

        with ThreadPoolExecutor(jobs) as pool:
            for future in as_completed([pool.submit(judge, target) for target in chosen]):
                yield future.result()
        for bench in benches:
            bench.close()


def check_unchanged(root: Path, tests: Iterable[str]) -> None:
    """Tests that fail without a mutant say nothing of one."""
    with tempfile.TemporaryDirectory(prefix="mutate-") as temporary:
        bench = Bench(root, Path(temporary), timeout_s=3_600.0)
        try:
            if not bench.passes(sorted(tests)):
                raise RuntimeError("the tests fail on the source as it is")
        finally:
            bench.close()


def table(verdicts: Sequence[tuple[Target, str]]) -> list[str]:
    """Mutants tried, killed and left, by package."""
    tried: Counter[str] = Counter()
    left: Counter[str] = Counter()
    for target, verdict in verdicts:
        package = Path(target.module).parts[2]
        tried[package] += 1
        left[package] += verdict == SURVIVED
    rows = [
        f"| {package} | {count} | {count - left[package]} | {left[package]} |"
        for package, count in sorted(tried.items())
    ]
    return ["| package | tried | killed | survived |", "|---|---|---|---|", *rows]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    parser.add_argument("packages", nargs="*", default=list(PACKAGES))
    parser.add_argument("--count", type=int, default=150, help="mutants to try")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--jobs", type=int, default=2, help="at a time")
    parser.add_argument("--timeout", type=float, default=240.0, help="seconds a run of tests has")
    parser.add_argument("--only", action="append", help="this mutant, path:number; repeatable")
    parser.add_argument("--own-tests", action="store_true", help="no tests of other modules")
    asked = parser.parse_args(arguments)
    found = targets(ROOT, asked.packages)
    if asked.only:
        chosen = [t for t in found if f"{t.module}:{t.mutant.number}" in asked.only]
    else:
        chosen = Random(asked.seed).sample(found, min(asked.count, len(found)))
    print(f"{len(chosen)} of {len(found)} mutants", flush=True)
    verdicts = []
    began = time.monotonic()
    users = [] if asked.own_tests else asked.packages
    modules = {target.module for target in chosen}
    tests = {test for module in modules for test in own_tests(ROOT, module)}
    tests |= {test for module in modules for test in users_tests(ROOT, module, users)}
    check_unchanged(ROOT, tests)
    print(f"{time.monotonic() - began:6.0f} s  all {len(tests)} test files pass", flush=True)
    for target, verdict in run(ROOT, chosen, users, jobs=asked.jobs, timeout_s=asked.timeout):
        verdicts.append((target, verdict))
        print(f"{time.monotonic() - began:6.0f} s  {verdict:8}  {target}", flush=True)
    print("\n".join(table(verdicts)))
    return int(any(verdict == SURVIVED for _, verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
