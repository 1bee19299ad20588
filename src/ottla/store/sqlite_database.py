"""The SQLite file of the embedded store.

Owns: the file and its format, described in docs/formats/store.md. Never handles sessions or
watches. Synchronous: `embedded` calls it on a single thread. A commit returns when the data is on
the disk (write-ahead log, synchronous=FULL).

Ephemeral nodes are never stored: they end with the process, so the file of a killed broker has
none.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from ottla.model.errors import UserError
from ottla.store.port import StoreUnavailable
from ottla.store.tree import Entry, Tree

FILE_NAME: Final = "ottla-store.sqlite"
APPLICATION_ID: Final = 0x4F74746C  # "Ottl"
FORMAT: Final = 1

_SCHEMA: Final = f"""
BEGIN IMMEDIATE;
CREATE TABLE node (
    path TEXT PRIMARY KEY, data BLOB NOT NULL, version INTEGER NOT NULL,
    created INTEGER NOT NULL, child_changes INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counter VALUES ('zxid', 0);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
COMMIT;
"""
_PUT: Final = "INSERT OR REPLACE INTO node VALUES (?, ?, ?, ?, ?)"
_REMOVE: Final = "DELETE FROM node WHERE path = ?"
_COUNT: Final = "UPDATE counter SET value = ? WHERE name = 'zxid'"


class SqliteDatabase:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def open(self) -> Tree:
        """Open or create the file, lock it against other processes, and read the tree."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                self._path, timeout=0, isolation_level=None, check_same_thread=False
            )
            self._prepare(self._connection)
            return self._read(self._connection)
        except sqlite3.Error as error:
            self.close()
            raise UserError(self._advice(error)) from error
        except UserError:
            self.close()
            raise

    def commit(self, entries: Mapping[str, Entry | None], zxid: int) -> None:
        """Store all entries or none; returns when they are on the disk."""
        assert self._connection is not None
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(_PUT, _stored_rows(entries.items()))
            connection.executemany(_REMOVE, _deleted_rows(entries.items()))
            connection.execute(_COUNT, (zxid,))
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            full = error.sqlite_errorcode == sqlite3.SQLITE_FULL
            code = errno.ENOSPC if full else errno.EIO
            raise StoreUnavailable(code, str(error), str(self._path)) from error
        if not self._path.exists():  # SQLite writes to a removed file without an error
            reason = "the file was removed while the broker was running"
            raise StoreUnavailable(errno.ENOENT, reason, str(self._path))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        [(format_,)] = connection.execute("PRAGMA user_version").fetchall()
        [(application,)] = connection.execute("PRAGMA application_id").fetchall()
        [(tables,)] = connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        if tables == 0:
            connection.executescript(_SCHEMA)
        elif application != APPLICATION_ID:
            raise UserError(
                f"{self._path} is not an Ottla metadata store; move it out of the log directory"
            )
        elif format_ > FORMAT:
            raise UserError(
                f"{self._path} has format {format_}, written by a newer Ottla; "
                f"this one reads formats up to {FORMAT}; upgrade Ottla"
            )
        else:
            connection.execute("BEGIN EXCLUSIVE")  # take the lock now, not at the first write
            connection.execute("COMMIT")

    def _read(self, connection: sqlite3.Connection) -> Tree:
        [(zxid,)] = connection.execute("SELECT value FROM counter WHERE name = 'zxid'").fetchall()
        tree = Tree(zxid)
        rows = connection.execute("SELECT path, data, version, created, child_changes FROM node")
        tree.load(
            (path, Entry(data, version, created, 0, child_changes, created))
            for path, data, version, created, child_changes in rows
        )
        return tree

    def _advice(self, error: sqlite3.Error) -> str:
        if "locked" in str(error):
            return (
                f"{self._path} is in use by another process; stop the broker that runs on this "
                "log directory first"
            )
        if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            return f"{self._path}: no space left on the disk; free some space and restart"
        return (
            f"cannot read {self._path}: {error}; restore it from a backup, or move it away and run "
            "`ottla adopt` on the log directories to recover the topics from their files"
        )


def _stored_rows(changes: Iterable[tuple[str, Entry | None]]) -> Iterator[tuple[object, ...]]:
    for path, entry in changes:
        if entry is not None and not entry.owner:
            yield path, entry.data, entry.version, entry.created, entry.child_changes


def _deleted_rows(changes: Iterable[tuple[str, Entry | None]]) -> Iterator[tuple[str]]:
    for path, entry in changes:
        if entry is None:
            yield (path,)
