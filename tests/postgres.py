"""A PostgreSQL server of its own for a test: Debian's, in a temporary folder, on a free port.

PostgreSQL refuses to run as root: then it runs as the user `nobody`, who owns the folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tests.cluster.process import wait_for
from tests.skips import skip_without
from tools.nodes import free_ports

INSTALLED: Final = Path("/usr/lib/postgresql")
USER: Final = "shop"
PASSWORD: Final = "pass word/1"
QUOTED: Final = "pass%20word%2F1"
NOBODY: Final = "nobody"
START_S: Final = 30.0


class Postgres:
    """`with Postgres() as database:` listens at `database.uri`, with a password."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="ottla-postgres-"))
        self._user = NOBODY if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        self._port = free_ports(1)[0]

    @property
    def uri(self) -> str:
        return f"postgresql://{USER}:{QUOTED}@127.0.0.1:{self._port}/postgres"

    def __enter__(self) -> Self:
        if self._user is not None:
            shutil.chown(self._folder, self._user)
        password = self._folder / "password"
        password.write_text(PASSWORD)
        if self._user is not None:
            shutil.chown(password, self._user)
        self._run(
            "initdb", "--pgdata", str(self._data), "--username", USER, "--no-sync",
            "--auth", "scram-sha-256", "--pwfile", str(password), "--encoding", "UTF8",
        )  # fmt: skip
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        command = [
            str(_program("postgres")), "-D", str(self._data), "-p", str(self._port),
            "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={self._folder}",
            "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=20",
        ]  # fmt: skip
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, user=self._user, cwd="/"
            )
        wait_for(self._answers, START_S, "PostgreSQL")

    def _answers(self) -> bool:
        try:
            return bool(self.execute("SELECT 1"))
        except Exception:
            return False

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(START_S)
            self._process = None

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements; the rows of the last one, if it has any."""
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(self.uri, autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _run(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(_program(name)), *arguments],
            capture_output=True, text=True, check=False, user=self._user, cwd="/",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


def _program(name: str) -> Path:
    """Debian keeps the server's programs out of PATH, by version."""
    found = sorted(INSTALLED.glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]))
    if found:
        return found[-1]
    other = shutil.which(name)
    if other is None:
        skip_without(f"PostgreSQL's {name} is missing; as root: apt-get install postgresql")
    return Path(other)
