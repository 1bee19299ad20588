"""A development cluster on this machine: its brokers, its ZooKeeper, and the folder it lives in.

Owns: the layout of the folder, and the file `cluster.json` in it, which says which processes belong
to the cluster. Never: touches a process that it cannot recognise as its own.

    DIR/cluster.json      brokers, ports and process ids
    DIR/broker-0/         data of broker 0;  DIR/broker-0.log  what it wrote
    DIR/zookeeper/        data of ZooKeeper; DIR/zookeeper.log what it wrote
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from ottla.cli.console import elapsed_seconds
from ottla.cli.kafka.daemon import start
from ottla.cli.kafka.zookeeper_start import command as zookeeper_command
from ottla.model.errors import UserError

STATE: Final = "cluster.json"
HOST: Final = "127.0.0.1"
READY: Final = "ready on "
LOG_TAIL: Final = 8
CHECK_EVERY_S: Final = 0.05
TICK_MS: Final = 200
"""ZooKeeper's unit of time: a session may be as short as two of them."""
SESSION_MS: Final = 6_000


@dataclass(frozen=True, slots=True)
class LocalProcess:
    """A broker, or the ZooKeeper server, as it was last started."""

    name: str
    port: int
    pid: int = 0

    def is_running(self, folder: Path) -> bool:
        """Whether the process is there, and still the one that was started for this folder."""
        try:
            words = Path(f"/proc/{self.pid}/cmdline").read_bytes()
        except OSError:
            return False
        return self.pid > 0 and str(folder).encode() in words

    def log(self, folder: Path) -> Path:
        return folder / f"{self.name}.log"


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """What `cluster.json` says."""

    folder: Path
    zookeeper_connect: str
    brokers: tuple[LocalProcess, ...]
    zookeeper: LocalProcess | None = None
    """None where the cluster uses a ZooKeeper that somebody else runs."""
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{broker.port}" for broker in self.brokers)

    @property
    def processes(self) -> tuple[LocalProcess, ...]:
        """In the order in which they are started."""
        return (*([self.zookeeper] if self.zookeeper else []), *self.brokers)

    def save(self) -> None:
        written = asdict(self)
        del written["folder"]
        path = self.folder / STATE
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
        temporary.replace(path)


def load(folder: Path) -> LocalCluster:
    path = folder.resolve() / STATE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        zookeeper = content["zookeeper"]
        return LocalCluster(
            folder.resolve(),
            content["zookeeper_connect"],
            tuple(LocalProcess(**broker) for broker in content["brokers"]),
            None if zookeeper is None else LocalProcess(**zookeeper),
            content["settings"],
        )
    except FileNotFoundError:
        raise UserError(
            f"{folder}: no cluster here; start one with: ottla cluster start --data-dir {folder}"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: cannot read the description of the cluster: {error}") from None


def broker_settings(cluster: LocalCluster, index: int) -> dict[str, str]:
    """The settings of one broker; those given on the command line come last."""
    count = len(cluster.brokers)
    return {
        "broker.id": str(index),
        "listeners": f"PLAINTEXT://{HOST}:{cluster.brokers[index].port}",
        "log.dirs": str(cluster.folder / cluster.brokers[index].name),
        "zookeeper.connect": cluster.zookeeper_connect,
        "zookeeper.session.timeout.ms": str(SESSION_MS),
        "zookeeper.connection.timeout.ms": "60000",
        "default.replication.factor": str(min(3, count)),
        "min.insync.replicas": str(min(2, count)),
        "controlled.shutdown.retry.backoff.ms": "300",  # all stop at once: no use in waiting
        **cluster.settings,
    }


def launch_zookeeper(cluster: LocalCluster) -> LocalCluster:
    """Start the ZooKeeper server; returns at once."""
    assert cluster.zookeeper is not None
    folder, server = cluster.folder, cluster.zookeeper
    data = folder / server.name
    data.mkdir(parents=True, exist_ok=True)
    properties = data / "zookeeper.properties"
    lines = {
        "dataDir": str(data),
        "clientPort": str(server.port),
        "clientPortAddress": HOST,
        "tickTime": str(TICK_MS),
        "maxSessionTimeout": "60000",
        "admin.enableServer": "false",
    }
    properties.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    pid = start(zookeeper_command(properties), server.log(folder))
    return replace(cluster, zookeeper=replace(server, pid=pid))


def launch_broker(cluster: LocalCluster, index: int) -> LocalCluster:
    """Start one broker; returns at once."""
    broker = cluster.brokers[index]
    log = broker.log(cluster.folder)
    if log.exists():
        log.replace(log.with_suffix(".log.1"))  # the ready line of an earlier life is not ours
    words = [sys.executable, "-m", "ottla", "serve"]
    for key, value in broker_settings(cluster, index).items():
        words += ["--set", f"{key}={value}"]
    started = replace(broker, pid=start(words, log))
    brokers = (*cluster.brokers[:index], started, *cluster.brokers[index + 1 :])
    return replace(cluster, brokers=brokers)


def wait_until_ready(
    brokers: Sequence[LocalProcess],
    folder: Path,
    timeout_s: float,
    report: Callable[[LocalProcess, float], None],
) -> None:
    """Until each of them has printed its ready line; UserError if one ends or takes too long."""
    waiting = list(brokers)
    for seconds in elapsed_seconds(timeout_s, CHECK_EVERY_S):
        for broker in list(waiting):
            log = broker.log(folder)
            if log.exists() and READY in log.read_text(encoding="utf-8", errors="replace"):
                report(broker, seconds)
                waiting.remove(broker)
            elif not _is_child_alive(broker.pid):
                raise UserError(f"{broker.name} ended during its start; {_tail(log)}")
        if not waiting:
            return
    names = ", ".join(broker.name for broker in waiting)
    tail = _tail(waiting[0].log(folder))
    raise UserError(f"not ready within {timeout_s:g} s: {names}; {tail}")


def stop_processes(
    processes: Sequence[LocalProcess],
    folder: Path,
    timeout_s: float,
    report: Callable[[LocalProcess], None],
) -> list[LocalProcess]:
    """Ask processes to end and wait for them; returns those that are still there."""
    running = [process for process in processes if process.is_running(folder)]
    for process in running:
        os.kill(process.pid, signal.SIGTERM)
    for _ in elapsed_seconds(timeout_s, CHECK_EVERY_S):
        for process in [each for each in running if not _is_alive(each, folder)]:
            report(process)
            running.remove(process)
        if not running:
            break
    return running


def free_port(first: int, taken_ports: set[int]) -> int:
    """The first port from `first` on that nobody listens on; it is added to `taken_ports`."""
    for port in range(first, min(first + 1_000, 65_536)):
        if port in taken_ports:
            continue
        try:
            socket.create_server((HOST, port)).close()
        except OSError:
            continue
        taken_ports.add(port)
        return port
    raise UserError(f"--port {first}: none of the thousand ports from there on is free")


def _is_child_alive(pid: int) -> bool:
    """Whether a process that this one started still runs; takes its exit status if not."""
    try:
        ended, _ = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return Path(f"/proc/{pid}").exists()
    return ended == 0


def _is_alive(process: LocalProcess, folder: Path) -> bool:
    """A process that this command has started itself is a zombie until its status is taken."""
    return process.is_running(folder) and _is_child_alive(process.pid)


def _tail(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL:]
    except OSError:
        return f"{log} does not exist"
    return "\n  ".join([f"the end of {log}:", *lines])
