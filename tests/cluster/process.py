"""One `ottla serve` as a process: started, killed, stopped, and looked at.

Owns: the process, its port (the same in every life, so that clients find it again) and what all
its lives wrote. Never: talks to the broker.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tools.nodes import free_ports

READY_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 60.0
PAUSE_MIN_S: Final = 0.01
PAUSE_MAX_S: Final = 0.1
READY: Final = re.compile(r"^broker \d+ ready on ", re.MULTILINE)


class Ended(Exception):
    """The broker ended instead of getting ready; the message holds what it wrote."""


class BrokerProcess:
    """A broker that may live several times, on one port and one set of directories.

    It keeps records for good, however old they say they are, and waits for a slow ZooKeeper,
    unless its settings say otherwise.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        *,
        dirs: Sequence[Path] = (),
        host: str = "127.0.0.1",
    ) -> None:
        self.folder = folder
        self.settings = {
            "log.retention.ms": "-1",
            "zookeeper.connection.timeout.ms": "30000",  # not as short as a test's sessions
            **(settings or {}),
        }
        self.dirs = list(dirs) or [folder / "data"]
        self.host = host
        self.port = free_ports(1, host)[0]
        self.listeners = [f"PLAINTEXT://{self.address}"]
        self.program = ["-m", "ottla"]
        self.lives = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the broker was not started"
        return self._process

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait()

    # Life and death

    def launch(self) -> None:
        """Start a process, and wait for nothing."""
        assert self._process is None or self._process.poll() is not None, "it still runs"
        self.lives += 1
        command = [sys.executable, *self.program, "serve"]
        command += ["--listeners", ",".join(self.listeners)]
        command += ["--data-dir", ",".join(map(str, self.dirs))]
        for key, value in self.settings.items():
            command += ["--set", f"{key}={value}"]
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._path("out").open("wb") as out, self._path("err").open("wb") as err:
            self._process = subprocess.Popen(command, stdout=out, stderr=err, cwd=self.folder)

    def start(self) -> float:
        """Start and wait until it is ready; how long that took, in seconds."""
        began = time.monotonic()
        self.launch()
        wait_for(self.ready_or_ended, READY_TIMEOUT_S)
        if self.process.poll() is not None:
            raise Ended(f"exit code {self.process.returncode}\n{self.said}")
        return time.monotonic() - began

    def ready_or_ended(self) -> bool:
        ready = READY.search(self._path("out").read_text()) is not None
        return ready or self.process.poll() is not None

    def kill(self) -> None:
        """`kill -9`: the page cache stays, everything else of the process goes."""
        self.process.kill()
        self.process.wait()

    def terminate(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """SIGTERM, as an operator stops it; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout_s)

    def ends(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Wait until it ends of itself; its exit code."""
        return self.process.wait(timeout_s)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    # What can be seen of it

    @property
    def said(self) -> str:
        """What this life wrote to stderr."""
        return self._path("err").read_text()

    @property
    def said_ever(self) -> str:
        """What all lives wrote to stderr."""
        lives = range(1, self.lives + 1)
        return "".join((self.folder / f"life-{life}.err").read_text() for life in lives)

    def warnings(self) -> list[str]:
        """The lines of this life that are warnings or worse."""
        return [line for line in self.said.splitlines() if re.search(WORTH_READING, line)]

    @property
    def rss_bytes(self) -> int:
        """What it holds of the machine's memory now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
        assert found is not None
        return int(found[1]) * 1024

    @property
    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def partition_dir(self, topic: str, partition: int = 0) -> Path:
        name = f"{topic}-{partition}"
        return next(one / name for one in self.dirs if (one / name).is_dir())

    def _path(self, kind: str) -> Path:
        return self.folder / f"life-{self.lives}.{kind}"


WORTH_READING: Final = re.compile(r"^\S+ \S+ (WARNING|ERROR|CRITICAL) |Traceback|^ottla: ")


def wait_for(condition: Callable[[], bool], timeout_s: float = 30.0, what: str = "it") -> None:
    """Poll until the condition holds: ever more seldom, for it may ask for much."""
    began_s = time.monotonic()
    while not condition():
        waited_s = time.monotonic() - began_s
        assert waited_s < timeout_s, f"waited {timeout_s} s for {what}"
        time.sleep(min(max(PAUSE_MIN_S, waited_s / 10), PAUSE_MAX_S))
