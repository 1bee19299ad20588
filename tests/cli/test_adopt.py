"""Promises of `ottla adopt`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import ottla
from ottla.cli.main import run
from ottla.log.files import RealDisk
from ottla.store import paths
from ottla.store.embedded import EmbeddedStore
from ottla.store.nodes import ConfigNode, TopicNode
from ottla.store.sqlite_database import FILE_NAME, SqliteDatabase
from ottla.testing import Broker
from tests.cli.kafka_data import TOPIC_ID, write_kafka_data


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_kafka_data(tmp_path)


# As Kafka 4 in KRaft mode writes it.


def contents(path: Path) -> dict[str, bytes]:
    return {
        str(one.relative_to(path)): one.read_bytes() for one in path.rglob("*") if one.is_file()
    }


async def read(path: Path) -> tuple[list[str], dict[str, bytes]]:
    store = EmbeddedStore(SqliteDatabase(path / FILE_NAME))
    await store.start()
    try:
        topics = await store.children(paths.TOPICS)
        wanted = [paths.topic("orders"), paths.topic_config("orders")]
        found = await store.get_many(wanted)
        data = {key: node.data for key, node in zip(wanted, found, strict=True) if node}
        return topics, data
    finally:
        await store.close()


def test_a_directory_is_taken_over_without_changing_a_file(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(data)
    assert run(["adopt", str(data)]) == 0
    assert {name: contents(data)[name] for name in before} == before
    assert (data / FILE_NAME).stat().st_mode & 0o777 == 0o600, "credentials will stand there"
    topics, nodes = asyncio.run(read(data))
    assert topics == ["orders"]
    assert TopicNode.decode(nodes[paths.topic("orders")]).topic_id == TOPIC_ID
    shown = capsys.readouterr()
    assert "orders" in shown.out and "--set broker.id=1" in shown.out
    assert "the metadata of a KRaft cluster; left in place" in shown.err


def test_a_dry_run_changes_nothing_at_all(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(data)
    assert run(["adopt", str(data), "--dry-run"]) == 0
    assert contents(data) == before
    assert "Nothing was changed." in capsys.readouterr().out
    (data / ".lock").unlink()
    assert run(["adopt", str(data), "--dry-run"]) == 0
    assert not (data / ".lock").exists()


def test_settings_come_from_the_file(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"orders": {"cleanup.policy": "compact"}}))
    assert run(["adopt", str(data), "--configs", str(file)]) == 0
    _, nodes = asyncio.run(read(data))
    config = ConfigNode.decode(nodes[paths.topic_config("orders")])
    assert config.overrides == {"cleanup.policy": "compact"}


def test_a_directory_in_use_is_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = RealDisk().lock(data / ".lock")
    assert run(["adopt", str(data)]) == 2
    assert "in use by another process; stop that broker first" in capsys.readouterr().err
    lock.release()
    assert run(["adopt", str(data)]) == 0


def test_an_unclean_directory_is_refused_until_one_insists(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    assert run(["adopt", str(data)]) == 2
    assert "no clean shutdown recorded" in capsys.readouterr().err
    assert not (data / FILE_NAME).exists()
    assert run(["adopt", str(data), "--dry-run"]) == 0
    assert run(["adopt", str(data), "--recover"]) == 0


def test_what_was_taken_over_is_not_taken_over_again(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["adopt", str(data)]) == 0
    assert run(["adopt", str(data)]) == 2
    assert "adopted" in capsys.readouterr().err
    assert run(["adopt", str(data), "--dry-run"]) == 2


@pytest.mark.parametrize("path", ["nowhere", "."])
def test_a_path_that_is_no_data_directory_is_named(
    tmp_path: Path, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["adopt", str(tmp_path / path)]) == 2
    assert str(tmp_path / path) in capsys.readouterr().err


def test_a_directory_of_our_own_is_taken_over_when_its_store_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the error of a damaged store advises; a partition that was never led has no epochs."""
    data = tmp_path / "data"
    with Broker({"offsets.topic.num.partitions": "1"}, data_dir=data) as broker:
        with ottla.Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topic("orders", partitions=2)
        with ottla.Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            producer.send("orders", b"kept", partition=1).result(30)
    (data / FILE_NAME).write_bytes(b"no database at all, and long enough to be one" * 200)
    assert run(["adopt", str(data)]) == 2
    said = capsys.readouterr().err
    assert "move it away and run `ottla adopt`" in said
    (data / FILE_NAME).unlink()
    assert run(["adopt", str(data)]) == 0
    topics, _ = asyncio.run(read(data))
    assert "orders" in topics
    assert run(["adopt", str(data)]) == 2
    assert f"start the broker with: ottla serve --data-dir {data}" in capsys.readouterr().err
