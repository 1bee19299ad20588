"""Disks that fill up, fail, go missing or come back empty under a real broker."""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol import wire
from tests.cluster.file_systems import as_root, fill, tmpfs
from tests.cluster.load import create_topic, produce, values
from tests.cluster.process import BrokerProcess, Ended, wait_for
from tests.raw_requests import (
    CREATE_TOPICS,
    METADATA,
    PRODUCE,
    Line,
    batch,
    create_topics,
    fetched,
    produce_fields,
    produced,
)

NO_MORE = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": False}
FAILED = ErrorCode.kafka_storage_error
NOTICED_WITHIN_S = 3
"""How long a broker may go on after its files were removed; on an idle machine it is a second."""
MADE = (ErrorCode.none, ErrorCode.topic_already_exists)


def fill_until_refused(line: Line, topic: str, size: int = 200_000) -> int:
    """Produce until the disk takes no more; how many batches were acknowledged."""
    for number in range(1000):
        answer = produced(line, topic, batch("." * size))
        if answer.error_code is not ErrorCode.none:
            assert answer.error_code is FAILED
            return number
        assert answer.base_offset == number
    raise AssertionError("the disk did not become full")


def on_directory(topics: list[str], directory: Path) -> list[str]:
    return [topic for topic in topics if (directory / f"{topic}-0").is_dir()]


@as_root
@pytest.mark.spec("LOG-99")
def test_a_full_disk_refuses_appends_and_no_offset_is_given_twice(tmp_path: Path) -> None:
    """With 56 and without half a batch; the partitions of the other disk serve on."""
    with tmpfs(tmp_path / "small") as small:
        dirs = [tmp_path / "large", small / "data"]
        with BrokerProcess(tmp_path, dirs=dirs) as broker:
            topics = ["a", "b"]
            with Line(broker.address) as line:
                create_topics(line, topics)
                [small_topic] = on_directory(topics, dirs[1])
                [large_topic] = on_directory(topics, dirs[0])
                assert produced(line, large_topic, batch("before")).base_offset == 0
                taken = fill_until_refused(line, small_topic)
                assert taken > 10
                assert fetched(line, small_topic).error_code is FAILED
                assert produced(line, small_topic, batch("small")).error_code is FAILED
                assert produced(line, large_topic, batch("after")).base_offset == 1
                wait_for(lambda: leader(line, small_topic) == -1, what="the controller to hear")
                assert leader(line, large_topic) == 0
            assert "Traceback" not in broker.said
            assert broker.terminate() == 0
            for old in (small / "data" / f"{small_topic}-0").glob("*.log"):
                whole = old.stat().st_size
            assert whole == taken * (whole // taken)  # no half batch behind the last whole one
            subprocess.run(["mount", "-o", "remount,size=64m", small], check=True)
            broker.start()
            with Line(broker.address) as line:
                wait_for(lambda: leader(line, small_topic) == 0, what="a leader")
                assert produced(line, small_topic, batch("again")).base_offset == taken


def leader(line: Line, topic: str) -> int:
    asked = [{"topic_id": None, "name": topic}]
    reply = line.ask(METADATA, 12, topics=asked, **NO_MORE)
    found: int = reply.topics[0].partitions[0].leader_id
    return found


@pytest.mark.spec("LOG-99")
def test_a_short_write_leaves_nothing_behind(tmp_path: Path) -> None:
    """The kernel takes a part of a batch and no more: the only directory has failed."""
    with BrokerProcess(tmp_path) as broker:
        create_topic(broker.address, "short")
        with Line(broker.address) as line:
            assert produced(line, "short", batch("." * 300_000)).base_offset == 0
            log = broker.partition_dir("short") / f"{0:020d}.log"
            whole = log.read_bytes()
            limit = len(whole) + 150_000
            resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (limit, limit))
            answer = produced(line, "short", batch("." * 300_000))
            assert answer.error_code is FAILED
        assert broker.ends() == 1  # nothing is left to keep records in
        [stopped] = broker.warnings()
        assert f"broker stopped: every log directory failed: {broker.dirs[0]}" in stopped
        assert log.read_bytes() == whole
        broker.start()
        with Line(broker.address) as line:
            assert produced(line, "short", batch("next")).base_offset == 1


@as_root
@pytest.mark.spec("LOG-99")
def test_a_directory_that_fails_takes_only_its_own_partitions(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "other") as other:
        dirs = [tmp_path / "first", other / "data"]
        with BrokerProcess(tmp_path, dirs=dirs) as broker:
            topics = ["a", "b", "c", "d"]
            with Line(broker.address) as line:
                create_topics(line, topics)
                for topic in topics:
                    assert produced(line, topic, batch("one")).base_offset == 0
                lost = on_directory(topics, dirs[1])
                assert len(lost) == 2
                fill(other)
                for topic in topics:
                    expected = FAILED if topic in lost else ErrorCode.none
                    assert produced(line, topic, batch("two" * 5_000)).error_code is expected
                kept = [topic for topic in topics if topic not in lost]
                create_topics(line, ["new"])  # goes where there is still a disk
                assert produced(line, "new", batch("one")).error_code is ErrorCode.none
            for topic in kept:
                produce(broker.address, topic, ["three"])
            assert broker.terminate() == 0
            # It starts without the disk, too, and makes no empty partitions in place of the lost.
            subprocess.run(["mount", "-o", "remount,ro", other], check=True)
            broker.start()
            with Line(broker.address) as line:
                for topic in lost:
                    assert produced(line, topic, batch("more")).error_code is FAILED
                for topic in [*kept, "new"]:
                    assert produced(line, topic, batch("more")).error_code is ErrorCode.none
            assert broker.terminate() == 0
            subprocess.run(["mount", "-o", "remount,rw", other], check=True)
            (other / "filler").unlink()
            broker.start()
            with Line(broker.address) as line:
                for topic in lost:
                    wait_for(lambda topic=topic: leader(line, topic) == 0)  # type: ignore[misc]
                    assert produced(line, topic, batch("back")).base_offset == 1
            assert "Traceback" not in broker.said_ever


@as_root
def test_while_metadata_cannot_be_written_what_is_known_is_served(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "first") as first:
        dirs = [first / "data", tmp_path / "second"]
        with BrokerProcess(tmp_path, dirs=dirs) as broker:
            topics = ["a", "b"]
            with Line(broker.address) as line:
                create_topics(line, topics)
                [elsewhere] = on_directory(topics, dirs[1])
                fill(first)
                for offset in range(3):
                    assert produced(line, elsewhere, batch("v")).base_offset == offset
                asked = (ask_for_topic(line, f"new{number}") for number in range(60))
                assert next(code for code in asked if code is not ErrorCode.none)
                assert produced(line, elsewhere, batch("v")).base_offset == 3
                (first / "filler").unlink()
                wait_for(lambda: ask_for_topic(line, "after") in MADE, what="the controller")
                assert produced(line, "after", batch("v")).base_offset == 0
            assert "Traceback" not in broker.said
            assert broker.terminate() == 0


def ask_for_topic(line: Line, name: str) -> ErrorCode:
    topic = {
        "name": name,
        "num_partitions": 1,
        "replication_factor": 1,
        "assignments": [],
        "configs": [],
    }
    reply = line.ask(CREATE_TOPICS, 7, topics=[topic], timeout=1_000, validate_only=False)
    code: ErrorCode = reply.topics[0].error_code
    return code


# The last directory


@as_root
@pytest.mark.spec("LOG-99")
def test_when_the_last_disk_is_full_every_client_hears_56_and_one_line_says_why(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        only = stack.enter_context(tmpfs(tmp_path / "only"))
        with BrokerProcess(tmp_path, dirs=[only / "data"]) as broker:
            lines = [stack.enter_context(Line(broker.address)) for _ in range(8)]
            create_topics(lines[0], [f"t{number}" for number in range(8)])
            fill(only)
            for number, line in enumerate(lines):
                line.send_request(PRODUCE, 9, **produce_fields(f"t{number}", batch("." * 9_000)))
            codes = [code for line in lines for code in codes_until_closed(line)]
            assert set(codes) == {FAILED}
            assert broker.ends() == 1
            [stopped] = broker.warnings()
            assert "CRITICAL ottla: broker stopped: every log directory failed" in stopped
            assert f"{only / 'data'} (No space left on device" in stopped
            assert "Traceback" not in broker.said


def acknowledged_one_by_one(line: Line, topic: str) -> Iterator[ErrorCode]:
    """Produce with acks=1, each after the answer to the one before; ends when the broker closes."""
    while True:
        try:
            line.send_request(PRODUCE, 9, **produce_fields(topic, batch("after"), acks=1))
            reply = line.receive()
        except ConnectionError:
            return
        if reply is None:
            return
        decoded = wire.decode_reply(PRODUCE, 9, memoryview(reply))
        yield decoded.responses[0].partition_responses[0].error_code


def codes_until_closed(line: Line) -> Iterator[ErrorCode]:
    """What a Produce said, one after another, until the broker closed the connection."""
    while (reply := line.receive()) is not None:
        decoded = wire.decode_reply(PRODUCE, 9, memoryview(reply))
        yield decoded.responses[0].partition_responses[0].error_code


@as_root
def test_a_broker_on_a_full_disk_never_says_that_it_is_ready(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "only") as only:
        broker = BrokerProcess(tmp_path, dirs=[only / "data"])
        for _ in range(2):  # a new directory, then one that has been used
            fill(only)
            with pytest.raises(Ended, match="exit code 2"):
                broker.start()
            [said] = broker.said.splitlines()
            assert f"no usable log directory: {only / 'data'}: No space left" in said
            (only / "filler").unlink()
            with broker:
                produce(broker.address, "t", ["kept"])
                assert broker.terminate() == 0


@as_root
def test_a_stop_on_a_full_disk_is_not_called_clean(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "only") as only:
        broker = BrokerProcess(tmp_path, dirs=[only / "data"])
        with broker:
            produce(broker.address, "t", ["kept"])
            fill(only)
            assert broker.terminate() == 1
            [stopped] = broker.warnings()
            assert "every log directory failed" in stopped
            (only / "filler").unlink()
            broker.start()
            assert values(broker.address, "t") == ["kept"]


@pytest.mark.parametrize("whole", [True, False], ids=["the directory", "what is in it"])
def test_nothing_is_acknowledged_from_files_that_were_removed(tmp_path: Path, whole: bool) -> None:
    with BrokerProcess(tmp_path) as broker:
        with Line(broker.address) as line:
            create_topics(line, ["t"])
            assert produced(line, "t", batch("before")).base_offset == 0
            remove(broker.dirs[0], whole=whole)
            assert produced(line, "t", batch("after")).error_code is FAILED
        assert broker.ends() == 1
        [stopped] = broker.warnings()
        assert "was removed while the broker was running" in stopped


def remove(directory: Path, *, whole: bool) -> None:
    for path in directory.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if whole:
        directory.rmdir()


def test_a_broker_whose_files_were_removed_stops_though_nobody_waits_for_the_disk(
    tmp_path: Path,
) -> None:
    """acks=1 is answered from the page cache, so it takes a moment longer."""
    with BrokerProcess(tmp_path) as broker:
        with Line(broker.address) as line:
            create_topics(line, ["t"])
            shutil.rmtree(broker.dirs[0])
            removed_s, last_s, count = time.monotonic(), 0.0, 0
            for code in acknowledged_one_by_one(line, "t"):
                assert code in (ErrorCode.none, FAILED)
                if code is FAILED:
                    break
                last_s, count = time.monotonic() - removed_s, count + 1
                time.sleep(0.01)
        assert last_s < NOTICED_WITHIN_S, f"{count} records"
        assert broker.ends() == 1
        [stopped] = broker.warnings()
        assert f"every log directory failed: {broker.dirs[0]}" in stopped


# A disk that comes back as another


def two_directories(tmp_path: Path) -> BrokerProcess:
    """A stopped broker with a topic in each of its directories."""
    broker = BrokerProcess(tmp_path, dirs=[tmp_path / "one", tmp_path / "two"])
    with broker:
        with Line(broker.address) as line:
            create_topics(line, ["a", "b"])
        for topic in ("a", "b"):
            produce(broker.address, topic, ["kept"])
        assert broker.terminate() == 0
    return broker


def wiped_second(broker: BrokerProcess) -> Path:
    shutil.rmtree(broker.dirs[1])
    return broker.dirs[1]


def left_out_second(broker: BrokerProcess) -> Path:
    return broker.dirs.pop()


def replaced_second(broker: BrokerProcess) -> Path:
    meta = (broker.dirs[1] / "meta.properties").read_text()
    other = re.sub(r"directory.id=.*", "directory.id=AAAAAAAAAAAAAAAAAAAAAQ", meta)
    shutil.rmtree(broker.dirs[1])
    broker.dirs[1].mkdir()
    (broker.dirs[1] / "meta.properties").write_text(other)
    return broker.dirs[1]


@pytest.mark.parametrize("lose", [wiped_second, left_out_second, replaced_second])
def test_a_lost_directory_is_started_without_only_on_the_operators_word(
    tmp_path: Path, lose: Callable[[BrokerProcess], Path]
) -> None:
    broker = two_directories(tmp_path)
    [gone_topic] = on_directory(["a", "b"], broker.dirs[1])
    [kept_topic] = on_directory(["a", "b"], broker.dirs[0])
    lost = lose(broker)
    for _ in range(2):  # the attempt itself must not make it look right
        with pytest.raises(Ended, match="exit code 2"):
            broker.start()
        assert broker.said.count("\n") == 1
        assert str(lost) in broker.said
        assert "log.dirs.accept.missing" in broker.said
    broker.settings["log.dirs.accept.missing"] = "true"
    with broker:
        [warning] = broker.warnings()
        assert str(lost) in warning
        assert values(broker.address, kept_topic) == ["kept"]
        with Line(broker.address) as line:
            wait_for(lambda: leader(line, gone_topic) == 0)
            assert produced(line, gone_topic, batch("anew")).base_offset == 0
        assert broker.terminate() == 0
    del broker.settings["log.dirs.accept.missing"]
    with broker:  # said once: from now on it is as it is
        assert broker.warnings() == []


def test_without_its_metadata_a_broker_does_not_pretend_to_be_new(tmp_path: Path) -> None:
    """The first directory was wiped, or the directories were named in another order."""
    broker = two_directories(tmp_path)
    broker.dirs.reverse()
    with pytest.raises(Ended, match="exit code 2"):
        broker.start()
    assert "has no metadata of that cluster" in broker.said
    broker.dirs.reverse()
    with broker:
        assert values(broker.address, "a") == values(broker.address, "b") == ["kept"]
        assert broker.terminate() == 0
    shutil.rmtree(broker.dirs[0])
    with pytest.raises(Ended, match="exit code 2"):
        broker.start()
    assert "log.dirs.accept.missing" in broker.said


@as_root
def test_the_first_directory_cannot_be_done_without(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "first") as first:
        broker = BrokerProcess(tmp_path, dirs=[first / "data", tmp_path / "second"])
        with broker:
            assert broker.terminate() == 0
        subprocess.run(["mount", "-o", "remount,ro", first], check=True)
        with pytest.raises(Ended, match="exit code 2"):
            broker.start()
        assert f"log.dirs: cannot use {first / 'data'}, the first log directory" in broker.said


def test_a_directory_of_another_broker_or_cluster_is_refused(tmp_path: Path) -> None:
    broker = two_directories(tmp_path)
    meta = broker.dirs[1] / "meta.properties"
    told = meta.read_text()
    for key, value in (("broker.id", "7"), ("cluster.id", "another-cluster-entirely")):
        meta.write_text(re.sub(rf"^{key}=.*$", f"{key}={value}", told, flags=re.MULTILINE))
        with pytest.raises(Ended, match="exit code 2"):
            broker.start()
        assert value in broker.said
        assert broker.said.count("\n") == 1
