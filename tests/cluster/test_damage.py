"""Files that rotted, tore or vanished while the broker was down, and what it makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from ottla.model.errors import ErrorCode
from tests.cluster.load import create_topic, produce, values
from tests.cluster.process import BrokerProcess
from tests.raw_requests import LIST_OFFSETS, Line, batch, create_topics, fetched, produced

NAMES: Final = [f"n-{number}" for number in range(200)]
SMALL_SEGMENTS: Final = {"internal.segment.bytes": "20000"}
PRODUCER: Final = {"producer_id": 0, "producer_epoch": 0}

Damage = Callable[[Path], None]


def flip(path: Path, at: float = 0.5, mask: int = 0x40) -> None:
    """One bit, somewhere in the file."""
    data = bytearray(path.read_bytes())
    data[int(len(data) * at)] ^= mask
    path.write_bytes(data)


def last_log(folder: Path) -> Path:
    return max(folder.glob("*.log"))


# The tail


def half_a_batch() -> bytes:
    return batch("never acknowledged" * 20)[:150]


def zeros() -> bytes:
    return bytes(5000)


def noise() -> bytes:
    return bytes(range(256)) * 8


@pytest.mark.spec("LOG-34", "LOG-39")
def test_a_torn_tail_is_cut_with_one_warning_and_kept_beside_the_log(tmp_path: Path) -> None:
    tails = {"half": half_a_batch, "zeros": zeros, "noise": noise}
    with BrokerProcess(tmp_path) as broker:
        for topic in tails:
            create_topic(broker.address, topic)
            produce(broker.address, topic, NAMES)
        broker.kill()
        added = {}
        for topic, tail in tails.items():
            log = last_log(broker.partition_dir(topic))
            size = log.stat().st_size
            with log.open("ab") as file:
                file.write(tail())
            added[log.with_name(f"{log.name}.{size}.cut")] = tail()
        broker.start()
        for cut, tail_bytes in added.items():
            assert cut.read_bytes() == tail_bytes
        assert len(broker.warnings()) == len(tails)
        for topic in tails:
            about = [
                line for line in broker.warnings() if f"{topic}-0: truncated to offset 200" in line
            ]
            assert len(about) == 1
            produce(broker.address, topic, ["after"])
            assert values(broker.address, topic) == [*NAMES, "after"]
        broker.kill()
        broker.start()
        assert broker.warnings() == []


@pytest.mark.spec("LOG-34")
def test_an_unflushed_hole_ends_the_log_before_it(tmp_path: Path) -> None:
    """Write-back is unordered: a page in the middle may be the one that never came."""
    with BrokerProcess(tmp_path) as broker:
        create_topic(broker.address, "holed")
        with Line(broker.address) as line:
            for number in range(20):
                assert produced(line, "holed", batch(f"{number:02}")).base_offset == number
        broker.kill()
        log = last_log(broker.partition_dir("holed"))
        whole = log.read_bytes()
        size = len(whole) // 20
        log.write_bytes(whole[: 12 * size] + bytes(size) + whole[13 * size :])
        broker.start()
        assert [line for line in broker.warnings() if "holed-0: truncated to offset 12" in line]
        with Line(broker.address) as line:
            assert produced(line, "holed", batch("next")).base_offset == 12


# What was flushed


def flush_and_stop(broker: BrokerProcess) -> None:
    """A recovery point at the log's end, and then an unclean stop."""
    assert broker.terminate() == 0
    broker.start()
    broker.kill()


def refused_with(line: Line, topic: str) -> tuple[ErrorCode, ErrorCode]:
    """What a consumer and a producer of partition 0 hear."""
    read = fetched(line, topic, 0).error_code
    return read, produced(line, topic, batch("more")).error_code


OFFLINE: Final = (ErrorCode.kafka_storage_error, ErrorCode.kafka_storage_error)


@pytest.mark.spec("LOG-33", "LOG-99")
def test_a_flipped_bit_below_the_recovery_point_takes_its_partition_offline(
    tmp_path: Path,
) -> None:
    with BrokerProcess(tmp_path) as broker:
        with Line(broker.address) as line:
            create_topics(line, ["rotten", "sound"])
        for topic in ("rotten", "sound"):
            produce(broker.address, topic, NAMES)
        flush_and_stop(broker)
        log = last_log(broker.partition_dir("rotten"))
        flip(log)
        kept = log.read_bytes()
        for _ in range(3):  # and it stays so, in every later life
            broker.start()
            with Line(broker.address) as line:
                assert refused_with(line, "rotten") == OFFLINE
            assert values(broker.address, "sound") == NAMES
            assert log.with_name(log.name + ".quarantined").read_bytes() == kept
            assert not log.exists()
            assert "Traceback" not in broker.said
            assert broker.terminate() == 0


def test_a_flipped_bit_found_after_a_clean_stop_takes_its_partition_offline(
    tmp_path: Path,
) -> None:
    """The last batch is looked at in every start, the rest when it is read."""
    with BrokerProcess(tmp_path) as broker:
        with Line(broker.address) as line:
            create_topics(line, ["early", "late", "sound"])
            for topic in ("early", "late", "sound"):
                for name in NAMES[:10]:
                    assert produced(line, topic, batch(name)).error_code is ErrorCode.none
        assert broker.terminate() == 0
        damage_header(last_log(broker.partition_dir("early")), batch_number=5)
        damage_header(last_log(broker.partition_dir("late")), batch_number=9)
        for _ in range(2):
            broker.start()
            with Line(broker.address) as line:
                for topic in ("early", "late"):
                    assert at_time(line, topic, 1).error_code is ErrorCode.kafka_storage_error
                    assert fetched(line, topic, 9).error_code is ErrorCode.kafka_storage_error
                    assert refused_with(line, topic) == OFFLINE
                assert produced(line, "sound", batch("more")).error_code is ErrorCode.none
            assert "Traceback" not in broker.said
            assert broker.terminate() == 0


def damage_header(log: Path, batch_number: int) -> None:
    """Make the magic of one batch something that never was; all of them are of one size."""
    data = bytearray(log.read_bytes())
    data[batch_number * (len(data) // 10) + 16] ^= 0x40
    log.write_bytes(data)


# What is derived


def missing(pattern: str) -> Damage:
    def damage(folder: Path) -> None:
        found = list(folder.glob(pattern))
        assert found or pattern == "*.txnindex", f"no {pattern} in {folder}"
        for path in found:
            path.unlink()

    return damage


def flipped(pattern: str, at: float) -> Damage:
    def damage(folder: Path) -> None:
        for path in folder.glob(pattern):
            if path.stat().st_size:
                flip(path, at)

    return damage


def overwritten(pattern: str, content: bytes) -> Damage:
    def damage(folder: Path) -> None:
        names = {path.stem for path in folder.glob("*.log")}
        paths = list(folder.glob(pattern)) or [folder / f"{name}{pattern[1:]}" for name in names]
        for path in paths:
            path.write_bytes(content)

    return damage


def cut_short(pattern: str) -> Damage:
    def damage(folder: Path) -> None:
        for path in folder.glob(pattern):
            path.write_bytes(path.read_bytes()[:-3])

    return damage


DAMAGES: Final[Mapping[str, Damage]] = {
    "index-missing": missing("*.index"),
    "index-flipped-early": flipped("*.index", 0.1),
    "index-flipped-late": flipped("*.index", 0.95),
    "index-zeroed": overwritten("*.index", bytes(64)),
    "index-cut": cut_short("*.index"),
    "index-noise": overwritten("*.index", b"\xff" * 80),
    "time-missing": missing("*.timeindex"),
    "time-flipped-early": flipped("*.timeindex", 0.1),
    "time-flipped-late": flipped("*.timeindex", 0.95),
    "time-zeroed": overwritten("*.timeindex", bytes(120)),
    "time-cut": cut_short("*.timeindex"),
    "txn-noise": overwritten("*.txnindex", b"\xff" * 50),
    "txn-zeroed": overwritten("*.txnindex", bytes(34)),
    "snapshot-missing": missing("*.snapshot"),
    "snapshot-flipped": flipped("*.snapshot", 0.5),
    "snapshot-noise": overwritten("*.snapshot", b"\x00\x01garbage"),
    "snapshot-cut": cut_short("*.snapshot"),
    "epochs-missing": missing("leader-epoch-checkpoint"),
    "epochs-noise": overwritten("leader-epoch-checkpoint", b"\x00garbage\n"),
    "epochs-empty": overwritten("leader-epoch-checkpoint", b""),
    "epochs-cut": cut_short("leader-epoch-checkpoint"),
}


def timed(number: int) -> int:
    return 1_700_000_000_000 + 1_000 * number


def fill(line: Line, topic: str) -> None:
    """Records of an idempotent producer over several segments, a second apart."""
    for number in range(60):
        assert produced(line, topic, numbered(number)).base_offset == number


def numbered(number: int) -> bytes:
    value = f"{number}|" + "." * 900
    return batch(value, timestamp=timed(number), base_sequence=number, **PRODUCER)


def at_time(line: Line, topic: str, timestamp: int) -> Any:
    """What ListOffsets says of partition 0."""
    asked = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}
    topics = [{"name": topic, "partitions": [asked]}]
    reply = line.ask(LIST_OFFSETS, 7, replica_id=-1, isolation_level=0, topics=topics)
    return reply.topics[0].partitions[0]


def check_all(line: Line, topic: str) -> None:
    """Every offset is found, every time is found, and a repeat is still a repeat."""
    for offset in (0, 1, 29, 30, 58, 59):
        found = fetched(line, topic, offset, partition_max_bytes=1)
        assert found.error_code is ErrorCode.none, (topic, offset)
        assert found.high_watermark == 60, topic
        assert bytes(found.records)[:8] == offset.to_bytes(8, "big"), (topic, offset)
    for number in (0, 7, 31, 59):
        found = at_time(line, topic, timed(number) - 500)
        assert (found.offset, found.timestamp) == (number, timed(number)), topic
    assert produced(line, topic, numbered(59)).base_offset == 59, topic
    refused = produced(line, topic, numbered(70)).error_code
    assert refused is ErrorCode.out_of_order_sequence_number, topic


@pytest.mark.spec("LOG-32", "LOG-37", "LOG-93", "LOG-16", "TXN-14")
@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_what_is_derived_from_the_log_is_derived_again(tmp_path: Path, clean: bool) -> None:
    with BrokerProcess(tmp_path, SMALL_SEGMENTS) as broker:
        with Line(broker.address) as line:
            create_topics(line, list(DAMAGES))
            for topic in DAMAGES:
                fill(line, topic)
        if clean:
            assert broker.terminate() == 0
        else:
            broker.kill()
        for topic, damage in DAMAGES.items():
            assert len(list(broker.partition_dir(topic).glob("*.log"))) > 1
            if clean or not topic.endswith("missing"):
                damage(broker.partition_dir(topic))
        broker.start()
        with Line(broker.address) as line:
            for topic in DAMAGES:
                check_all(line, topic)
        assert "Traceback" not in broker.said
        assert " ERROR " not in broker.said


CHECKPOINTS: Final = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
ROT: Final[Mapping[str, Callable[[Path], object]]] = {
    "missing": lambda path: path.unlink(missing_ok=True),
    "empty": lambda path: path.write_bytes(b""),
    "noise": lambda path: path.write_bytes(b"\xff\x00garbage"),
    "cut": lambda path: path.write_bytes(b"0\n2\nkept 0 40"),
    "future": lambda path: path.write_bytes(b"7\n0\n"),
    "lies": lambda path: path.write_bytes(
        b"0\n0\n" if path.name.startswith("log-start") else b"0\n1\nkept 0 99999\n"
    ),
}


@pytest.mark.spec("LOG-09", "LOG-10", "LOG-11", "LOG-12")
@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
@pytest.mark.parametrize("rot", ROT)
def test_a_bad_checkpoint_costs_no_record(tmp_path: Path, rot: str, clean: bool) -> None:
    with BrokerProcess(tmp_path) as broker:
        create_topic(broker.address, "kept")
        produce(broker.address, "kept", NAMES)
        if clean:
            assert broker.terminate() == 0
        else:
            broker.kill()
        for name in CHECKPOINTS:
            ROT[rot](broker.dirs[0] / name)
        broker.start()
        produce(broker.address, "kept", ["after"])
        assert values(broker.address, "kept") == [*NAMES, "after"]
        assert "Traceback" not in broker.said
