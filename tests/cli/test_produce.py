from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ottla
from ottla.testing import Broker
from tests.cli.ottla_program import Run
from tests.cli.terminal import is_readable


@pytest.mark.spec("TOOL-08")
def test_each_line_is_a_record(run: Run, topic: str) -> None:
    ran = run("produce", topic, "--partition", 1, stdin="one\n\ntwo")
    assert (ran.code, ran.err) == (0, f"sent 3 of 3 records to {topic}\n")
    rows = run("consume", topic, "--format", "json").out.splitlines()
    assert len(rows) == 3
    assert all('"partition": 1' in row for row in rows)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_keys_headers_and_codecs_arrive(run: Run, topic: str, codec: str) -> None:
    words = ("-K", r"\t", "-H", "source=shop", "-z", codec, "--acks", "1")
    assert run("produce", topic, *words, stdin="k\tv\n").code == 0
    shown = run("consume", topic, "--show", "headers,key")
    assert shown.out == "source=shop\tk\tv\n"


def test_lines_may_come_from_a_file_and_be_json(run: Run, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text('{"key": null, "value": "v", "timestamp": 1700000000000}\n')
    assert run("produce", topic, "--file", file, "--json").code == 0
    assert run("consume", topic, "--show", "timestamp").out == "2023-11-14T22:13:20.000Z\tv\n"


def test_a_tombstone_is_a_value_that_is_null(run: Run, topic: str) -> None:
    words = ("-K", ":", "--null", "NULL")
    assert run("produce", topic, *words, stdin="k:NULL\n").code == 0
    assert run("consume", topic, "--show", "key").out == "k\tnull\n"


def test_mistakes_are_said_in_a_line(run: Run, topic: str, tmp_path: Path) -> None:
    run("produce", topic, "-K", ":", stdin="no separator").failed(2, "line 1: no key separator")
    run("produce", topic, "-K", "").failed(2, "--key-separator ''")
    run("produce", topic, "--json", stdin="{").failed(2, "line 1: not JSON")
    run("produce", topic, "--file", tmp_path / "none").failed(2, "--file", "No such file")
    run("produce", topic, "-H", "=x").failed(2, "--header '=x'")
    run("produce", topic, "-z", "rar").failed(2, "--compression")
    run("produce", topic, "--acks", "two").failed(2, "acks='two'")
    run("produce", topic, "--partition", "-1").failed(2, "--partition")
    run("produce", topic, "--set", "x").failed(2, "--set 'x': expected key=value")
    run("produce", topic, "--set", "linger=1").failed(2, "linger", "did you mean linger.ms?")
    run("produce").failed(2, "TOPIC")


def test_records_that_are_not_taken_are_counted(run: Run, topic: str, admin: ottla.Admin) -> None:
    ran = run("produce", topic, "--set", "max.request.size=2000", stdin="x" * 9000 + "\nsmall\n")
    ran.failed(1, f"sent 1 of 2 records to {topic}\nottla: ")


@pytest.mark.parametrize(
    ("option", "line", "shown"),
    [
        ("→", "k→v", "k\tv"),
        ("\\", "k\\v", "k\tv"),
        (r"\x1f", "k\x1fv", "k\tv"),
        (r"\\", "k\\v", "k\tv"),
        (r"\q", r"k\qv", "k\tv"),
        ("é\\t", "ké\tv", "k\tv"),
    ],
)
def test_a_separator_is_any_text_and_a_lone_backslash_stands_for_itself(
    run: Run, topic: str, option: str, line: str, shown: str
) -> None:
    assert run("produce", topic, "-K", option, stdin=line + "\n").code == 0
    assert run("consume", topic, "--show", "key").out == shown + "\n"


def test_a_partition_that_is_not_there_is_refused_at_once_with_how_many_there_are(
    run: Run, topic: str
) -> None:
    """A producer waits max.block.ms for it: longer than the whole suite may take."""
    said = f"partition 99: topic {topic} has 2 partitions, 0 to 1"
    patient = ("--set", "max.block.ms=3600000")
    run("produce", topic, "-p", 99, *patient, stdin="x").failed(2, said)
    run("produce", topic, "--json", *patient, stdin='{"partition": 99}').failed(2, said)


def test_a_name_that_no_topic_can_have_is_refused_before_a_broker_is_asked(run: Run) -> None:
    ran = run("produce", "bad topic", "-b", "localhost:1", stdin="x")
    ran.failed(2, "'bad topic': invalid topic name: allowed are letters, digits, '.', '_' and '-'")


def test_on_a_terminal_nothing_is_written_over_what_is_typed(
    cli_broker: Broker, topic: str
) -> None:
    """The spinner begins after a moment without output, and erases the line it stands on."""
    program = (
        "import sys; from ottla.cli import console; console.PATIENCE_S = 0.01\n"
        "from ottla.cli import main; sys.exit(main.run(sys.argv[1:]))"
    )
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", program, "produce", topic, "-b", cli_broker.bootstrap_servers],
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    shown = b""
    with ottla.Admin(bootstrap_servers=cli_broker.bootstrap_servers) as admin:
        os.write(master, b"first\n")
        partitions = [ottla.TopicPartition(topic, at) for at in range(2)]
        deadline = time.monotonic() + 60
        while (
            sum(
                one.offset or 0
                for one in admin.list_offsets(dict.fromkeys(partitions, -1)).all().values()
            )
            == 0
        ):
            assert time.monotonic() < deadline
        while is_readable(master, 0):
            os.read(master, 65_536)  # what was shown until it was connected
        os.write(master, b"half a li")
        while is_readable(master, 1.0):
            shown += os.read(master, 65_536)
        os.write(master, b"ne\n\x04")
    assert process.wait(60) == 0
    os.close(master)
    assert shown == b"half a li"
