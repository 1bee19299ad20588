"""ZooKeeper servers on this machine: their files, their processes, and whether they serve.

Owns: the layout of the folder. Each server is a Java process of its own, with its data, its
settings and its log in `DIR/server-1`, `DIR/server-2` …
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from ottla.cli.kafka.zookeeper_start import command
from ottla.model.errors import UserError

HOST: Final = "127.0.0.1"
TICK_MS: Final = 200
"""ZooKeeper's unit of time: a session may be as short as two of them."""
MODE: Final = "Mode: "
STOP_TIMEOUT_S: Final = 10
REPLY_TIMEOUT_S: Final = 1.0
LOG_TAIL: Final = 8


class Server(NamedTuple):
    number: int
    port: int
    log: Path
    process: subprocess.Popen[bytes]

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def mode(self) -> str | None:
        """standalone, leader or follower; None while it does not serve."""
        try:
            with socket.create_connection((HOST, self.port), REPLY_TIMEOUT_S) as connection:
                connection.settimeout(REPLY_TIMEOUT_S)
                connection.sendall(b"srvr")
                reply = connection.makefile(encoding="utf-8", errors="replace").read()
        except OSError:
            return None
        lines = [line for line in reply.splitlines() if line.startswith(MODE)]
        return lines[0].removeprefix(MODE) if lines else None

    def end_of_log(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL:]
        return "\n  ".join([f"the end of {self.log}:", *lines])


@contextmanager
def running_servers(folder: Path, ports: Sequence[int]) -> Iterator[list[Server]]:
    """Start one server for each port; they are stopped at the end."""
    for port in ports:
        _check_free(port)
    members = _members(len(ports))
    with ExitStack() as stack:
        servers = []
        for number, port in enumerate(ports, 1):
            server = _start(folder / f"server-{number}", number, port, members)
            stack.callback(_stop, server)
            servers.append(server)
        try:
            yield servers
        finally:
            for server in servers:  # at once; each is waited for after that
                server.process.terminate()


def properties(data: Path, port: int, members: str) -> str:
    lines = {
        "dataDir": data,
        "clientPort": port,
        "clientPortAddress": HOST,
        "tickTime": TICK_MS,
        "maxSessionTimeout": 60_000,
        "initLimit": 100,
        "syncLimit": 50,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "srvr",
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items()) + members


def _members(count: int) -> str:
    """The servers of the ensemble; one alone is no ensemble."""
    if count == 1:
        return ""
    with ExitStack() as stack:  # held until all are drawn, so that none is drawn twice
        listening = [stack.enter_context(socket.create_server((HOST, 0))) for _ in range(2 * count)]
        ports = [each.getsockname()[1] for each in listening]
    return "".join(
        f"server.{number}={HOST}:{ports[2 * number - 2]}:{ports[2 * number - 1]}\n"
        for number in range(1, count + 1)
    )


def _start(folder: Path, number: int, port: int, members: str) -> Server:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "myid").write_text(f"{number}\n")
    file = folder / "zookeeper.properties"
    file.write_text(properties(folder, port, members))
    log = folder / "zookeeper.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command(file), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    return Server(number, port, log, process)


def _stop(server: Server) -> None:
    server.process.terminate()
    try:
        server.process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        server.process.kill()
        server.process.wait()


def _check_free(port: int) -> None:
    try:
        socket.create_server((HOST, port)).close()
    except OSError as error:
        raise UserError(
            f"--port {port}: cannot listen on {HOST}:{port}: {error.strerror}; choose another port"
        ) from None
