"""Kafka's own command-line tools, as an operator uses them.

The names of these tests are the second table of `docs/clients-matrix.md`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.interop.conftest import MakeTopic, Opened
from tests.interop.series import STEP_MS, Series
from tests.interop.tools_in_one import KafkaTools
from tools import kafka_cache

Run = Callable[..., subprocess.CompletedProcess[str]]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PER_CODEC = 20_000


@pytest.fixture(scope="module")
def tools(bootstrap: str) -> Iterator[KafkaTools]:
    try:
        running = KafkaTools(bootstrap)
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
    with closing(running):
        yield running


@pytest.fixture
def run(bootstrap: str, tools: KafkaTools) -> Run:
    """In one virtual machine, but those that read stdin, or count from one run on to the next."""

    def run(name: str, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        if name.startswith("kafka-console-"):
            where = ("--bootstrap-server", bootstrap)
            return kafka_cache.run_tool(name, *args, *where, stdin=stdin, timeout_s=120)
        return tools.run(name, *args)

    return run


@pytest.fixture
def done(run: Run) -> Callable[..., str]:
    """Runs a tool that must succeed without a word of complaint; what it printed."""

    def done(name: str, *args: str, stdin: str = "") -> str:
        finished = run(name, *args, stdin=stdin)
        assert finished.returncode == 0, finished.stdout + finished.stderr
        assert "ERROR" not in finished.stderr, finished.stderr
        return finished.stdout

    return done


@pytest.mark.spec("TOOL-04", "TOOL-05", "TOOL-06", "TOOL-07")
def test_kafka_topics_creates_lists_grows_describes_and_deletes(done: Callable[..., str]) -> None:
    topic = "made-by-kafka-topics"
    settings = ("--config", "retention.ms=5000000")
    created = done("kafka-topics", "--create", "--topic", topic, "--partitions", "3", *settings)
    assert f"Created topic {topic}." in created
    assert topic in done("kafka-topics", "--list").split()
    done("kafka-topics", "--alter", "--topic", topic, "--partitions", "5")
    described = done("kafka-topics", "--describe", "--topic", topic)
    assert "PartitionCount: 5\tReplicationFactor: 1" in described
    assert "retention.ms=5000000" in described
    assert described.count("\tIsr: ") == 5
    done("kafka-topics", "--delete", "--topic", topic)
    assert topic not in done("kafka-topics", "--list").split()


def test_kafka_topics_tells_a_bad_name_and_an_unknown_topic(run: Run) -> None:
    bad = run("kafka-topics", "--create", "--topic", "bad name!")
    assert bad.returncode == 1
    assert "InvalidTopicException" in bad.stderr
    unknown = run("kafka-topics", "--describe", "--topic", "no-such-topic")
    assert unknown.returncode == 1
    assert "does not exist as expected" in unknown.stdout


def test_kafka_configs_changes_and_describes_a_topic(
    run: Run, done: Callable[..., str], make_topic: MakeTopic
) -> None:
    topic = make_topic()
    done("kafka-configs", "--alter", "--topic", topic, "--add-config", "max.message.bytes=77777")
    described = done("kafka-configs", "--describe", "--topic", topic)
    assert "max.message.bytes=77777 sensitive=false" in described
    assert "DYNAMIC_TOPIC_CONFIG:max.message.bytes=77777" in described
    assert "DEFAULT_CONFIG:message.max.bytes=1048588" in described
    done("kafka-configs", "--alter", "--topic", topic, "--delete-config", "max.message.bytes")
    assert "77777" not in done("kafka-configs", "--describe", "--topic", topic)
    refused = run("kafka-configs", "--alter", "--topic", topic, "--add-config", "retention.ms=x")
    assert refused.returncode == 1
    assert "InvalidConfigurationException" in refused.stderr


def test_kafka_configs_changes_and_describes_a_broker(
    done: Callable[..., str], opened: Opened
) -> None:
    everything = done("kafka-configs", "--describe", "--broker-defaults")
    assert "message.max.bytes" not in everything
    change = ("--alter", "--broker-defaults", "--add-config", "message.max.bytes=1048589")
    done("kafka-configs", *change)
    try:
        described = done("kafka-configs", "--describe", "--broker-defaults")
        assert "message.max.bytes=1048589" in described
    finally:
        undo = ("--alter", "--broker-defaults", "--delete-config", "message.max.bytes")
        done("kafka-configs", *undo)


@pytest.mark.spec("TOOL-18", "WIRE-40")
def test_kafka_get_offsets_and_delete_records_agree(
    done: Callable[..., str], make_topic: MakeTopic, opened: Opened, base_ms: int, tmp_path: Path
) -> None:
    topic = make_topic()
    opened("confluent-kafka").produce(topic, Series(1000, base_ms), "none")
    for place, offset in (
        ("earliest", 0),
        ("latest", 1000),
        ("max-timestamp", 999),
        (str(base_ms + 700 * STEP_MS), 700),
    ):
        told = done("kafka-get-offsets", "--topic", topic, "--time", place)
        assert told.split() == [f"{topic}:0:{offset}"]
    asked = tmp_path / "offsets.json"
    upto = {"topic": topic, "partition": 0, "offset": 600}
    asked.write_text(json.dumps({"version": 1, "partitions": [upto]}))
    deleted = done("kafka-delete-records", "--offset-json-file", str(asked))
    assert f"partition: {topic}-0\tlow_watermark: 600" in deleted
    told = done("kafka-get-offsets", "--topic", topic, "--time", "earliest")
    assert told.split() == [f"{topic}:0:600"]


@pytest.mark.spec("TOOL-08", "TOOL-09", "TOOL-11")
def test_the_console_pair_passes_a_hundred_thousand_records_in_every_codec(
    done: Callable[..., str], make_topic: MakeTopic
) -> None:
    topic = make_topic()
    reader = ("parse.key=true", "parse.headers=true", "null.marker=NULL")
    properties = [word for value in reader for word in ("--reader-property", value)]
    lines = []
    for codec in CODECS:
        batch = [
            f"codec:{codec}\tkey-{i}\t{'NULL' if i % 7 == 6 else f'value-{i}'}\n"
            for i in range(PER_CODEC)
        ]
        codecs = ("--compression-codec", codec)
        done("kafka-console-producer", "--topic", topic, *properties, *codecs, stdin="".join(batch))
        lines += [line.replace("NULL", "null") for line in batch]
    read = console_read(done, topic, 0, len(lines))
    assert read == "".join(lines)


def console_read(done: Callable[..., str], topic: str, offset: int, count: int) -> str:
    shown = ("print.key=true", "print.headers=true")
    properties = [word for value in shown for word in ("--formatter-property", value)]
    place = ("--partition", "0", "--offset", str(offset), "--max-messages", str(count))
    limit = ("--timeout-ms", "20000")
    return done("kafka-console-consumer", "--topic", topic, *place, *limit, *properties)


def test_the_console_pair_tells_what_is_refused(run: Run, make_topic: MakeTopic) -> None:
    topic = make_topic()
    limit = ("--command-property", "max.request.size=8000000")
    large = run("kafka-console-producer", "--topic", topic, *limit, stdin="x" * 2_000_000 + "\n")
    assert "RecordTooLargeException" in large.stderr
    bad = run("kafka-console-producer", "--topic", "bad name!", stdin="x\n")
    assert "InvalidTopicException" in bad.stderr
    place = ("--partition", "0", "--offset", "100000", "--timeout-ms", "20000")
    strict = ("--command-property", "auto.offset.reset=none")
    outside = run("kafka-console-consumer", "--topic", topic, *place, *strict)
    assert "OffsetOutOfRangeException" in outside.stderr


def test_kafka_producer_perf_test_sends_a_hundred_thousand_records(
    done: Callable[..., str], make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=3)
    load = ("--num-records", "100000", "--record-size", "100", "--throughput", "-1")
    assert "100000 records sent" in done("kafka-producer-perf-test", "--topic", topic, *load)
    ends = done("kafka-get-offsets", "--topic", topic, "--time", "latest").split()
    assert sum(int(end.split(":")[2]) for end in ends) == 100_000
