"""A broker as an object of a test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.broker.data_plane import NoLogDirectoryOnline
from ottla.model.errors import UserError
from ottla.testing import Broker
from tests.raw_requests import (
    METADATA,
    PRODUCE,
    Line,
    batch,
    create_topics,
    fetched,
    produce_fields,
    produced,
)


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """Neither the broker's own nor one that it waits with; other tests may have theirs."""
    before = threads()
    yield
    left = threads() - before
    if any(one.name == "ottla-broker" for one in before):
        left = {one for one in left if not one.name.startswith("ottla_")}  # its pool has grown
    assert not left


def threads() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name.startswith("ottla")}


def write_and_read(servers: str) -> None:
    with Line(servers) as line:
        create_topics(line, ["t"])
        assert produced(line, "t", batch("a")).base_offset == 0
        assert fetched(line, "t").high_watermark == 1


def test_it_serves_inside_the_block_and_is_gone_after_it() -> None:
    with Broker() as broker:
        servers, data = broker.bootstrap_servers, broker.data_dir
        write_and_read(servers)
        assert (data / "t-0").is_dir()
    assert not data.exists()
    with pytest.raises(ConnectionRefusedError):
        Line(servers)


@pytest.mark.real_loop
async def test_it_serves_on_the_callers_own_loop_too() -> None:
    before = threads()
    async with Broker() as broker:
        assert "ottla-broker" not in {thread.name for thread in threads() - before}
        await asyncio.to_thread(write_and_read, broker.bootstrap_servers)
    assert not broker.data_dir.exists()


def test_several_run_side_by_side() -> None:
    with Broker() as one, Broker() as two:
        assert one.bootstrap_servers != two.bootstrap_servers
        write_and_read(one.bootstrap_servers)
        write_and_read(two.bootstrap_servers)


def test_settings_are_kafkas() -> None:
    with Broker({"num.partitions": "3"}) as broker, Line(broker.bootstrap_servers) as line:
        said = line.ask(
            METADATA,
            12,
            topics=[{"name": "made", "topic_id": None}],
            allow_auto_topic_creation=True,
            include_topic_authorized_operations=False,
        )
        assert len(said.topics[0].partitions) == 3


def test_data_in_a_folder_of_ones_own_is_kept_and_found_again(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        assert broker.data_dir == tmp_path
        write_and_read(broker.bootstrap_servers)
    with Broker(data_dir=tmp_path) as broker, Line(broker.bootstrap_servers) as line:
        assert fetched(line, "t").high_watermark == 1


def test_one_object_can_be_used_again() -> None:
    broker = Broker()
    for _ in range(2):
        with broker:
            write_and_read(broker.bootstrap_servers)


def test_metrics_are_offered_where_they_are_asked_for() -> None:
    with Broker() as broker:
        assert broker.metrics_port is None
    with Broker({"metrics.port": "0"}) as broker:
        assert broker.metrics_port


@pytest.mark.parametrize("settings", [{"listeners": "nonsense"}, {"num.partitions": "many"}])
@pytest.mark.real_loop
async def test_a_start_that_fails_is_the_callers_to_hear(settings: dict[str, str]) -> None:
    with pytest.raises(UserError), Broker(settings):
        pass
    with pytest.raises(UserError):
        async with Broker(settings):
            pass


def test_a_locked_folder_is_the_callers_to_hear(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        with pytest.raises(UserError, match="another process is using"), Broker(data_dir=tmp_path):
            pass
        write_and_read(broker.bootstrap_servers)


def test_a_broker_that_fails_meanwhile_says_so_at_the_end_of_the_block(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with (
        pytest.raises(NoLogDirectoryOnline),
        Broker(data_dir=data) as broker,
        Line(broker.bootstrap_servers) as line,
    ):
        create_topics(line, ["t"], segment_bytes=str(1 << 20))
        (data / "t-0").rename(tmp_path / "away")
        for _ in range(2):
            line.send_request(PRODUCE, 9, **produce_fields("t", batch("x" * 600_000)))
        while line.receive() is not None:
            pass


def test_what_the_test_found_goes_before_what_the_broker_says() -> None:
    with pytest.raises(ZeroDivisionError), Broker():
        raise ZeroDivisionError


def test_outside_its_block_there_is_nothing_to_ask() -> None:
    with pytest.raises(AssertionError, match="inside its with block"):
        _ = Broker().bootstrap_servers
