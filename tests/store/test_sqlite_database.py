"""The file of the embedded store: what it survives, and what it says when it does not."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from ottla.model.errors import UserError
from ottla.store.port import Create, StoreUnavailable
from ottla.store.sqlite_database import FILE_NAME, FORMAT, SqliteDatabase
from ottla.store.tree import Draft, Entry, Tree


def test_a_file_that_is_no_database_is_refused_with_advice(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    path.write_bytes(b"not a database, whatever its name says" * 100)
    with pytest.raises(UserError, match=r"cannot read .*ottla adopt"):
        SqliteDatabase(path).open()


def test_a_damaged_file_is_refused_with_advice(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    database = SqliteDatabase(path)
    tree = database.open()
    _commit(database, tree, [Create(f"/{number:04d}", b"x" * 500) for number in range(200)])
    database.close()
    with path.open("r+b") as file:
        for page in range(2, 12):
            file.seek(page * 4096)
            file.write(b"\xff" * 4096)
    with pytest.raises(UserError, match=FILE_NAME):
        SqliteDatabase(path).open()


def test_a_file_in_use_is_refused_with_a_question(tmp_path: Path) -> None:
    first = SqliteDatabase(tmp_path / FILE_NAME)
    first.open()
    with pytest.raises(UserError, match="in use by another process"):
        SqliteDatabase(tmp_path / FILE_NAME).open()
    first.close()
    second = SqliteDatabase(tmp_path / FILE_NAME)
    second.open()
    second.close()


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    with pytest.raises(UserError, match="is not an Ottla metadata store"):
        SqliteDatabase(path).open()


def test_a_file_of_a_newer_format_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    database = SqliteDatabase(path)
    database.open()
    database.close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    connection.close()
    with pytest.raises(UserError, match="written by a newer Ottla"):
        SqliteDatabase(path).open()


def test_a_commit_without_room_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    database = SqliteDatabase(path)
    tree = database.open()
    _commit(database, tree, [Create("/small")])
    database.close()

    cramped = CrampedDatabase(path)
    tree = cramped.open()
    with pytest.raises(StoreUnavailable) as failure:
        _commit(cramped, tree, [Create("/big", b"x" * 10_000_000)])
    assert failure.value.errno is not None
    _commit(cramped, tree, [Create("/tiny")])
    cramped.close()

    again = SqliteDatabase(path)
    assert again.open().children("/") == ["small", "tiny"]
    again.close()


def test_a_missing_directory_is_made(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "a" / "b" / FILE_NAME)
    database.open()
    database.close()
    assert (tmp_path / "a" / "b" / FILE_NAME).exists()


def test_ten_thousand_topics_are_read_back(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / FILE_NAME)
    tree = database.open()
    state = b'{"controller_epoch":1,"leader":0,"version":1,"leader_epoch":0,"isr":[0]}'
    ops = [Create("/topics")]
    for number in range(10_000):
        topic = f"/topics/topic-{number:05d}"
        ops += [
            Create(topic, b'{"version":3,"partitions":{"0":[0]}}' * 3),
            Create(f"{topic}/partitions"),
            Create(f"{topic}/partitions/0"),
            Create(f"{topic}/partitions/0/state", state),
        ]
    _commit(database, tree, ops)
    database.close()
    again = SqliteDatabase(tmp_path / FILE_NAME)
    tree = again.open()
    again.close()
    assert len(tree.children("/topics")) == 10_000
    assert len(tree.children("/topics/topic-09999/partitions/0")) == 1


class CrampedDatabase(SqliteDatabase):
    """One whose file may not grow."""

    def open(self) -> Tree:
        tree = super().open()
        assert self._connection is not None
        self._connection.execute("PRAGMA max_page_count = 20")
        return tree


def _commit(database: SqliteDatabase, tree: Tree, ops: list[Create]) -> None:
    draft = Draft(tree)
    draft.apply(ops, session=1)
    entries: dict[str, Entry | None] = draft.entries
    database.commit(entries, draft.zxid)
    tree.merge(draft)


def test_what_is_written_to_a_removed_file_is_not_called_stored(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    database = SqliteDatabase(path)
    tree = database.open()
    path.unlink()
    with pytest.raises(StoreUnavailable, match="removed while the broker was running"):
        _commit(database, tree, [Create("/a")])
    database.close()
