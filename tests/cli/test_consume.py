from __future__ import annotations

import signal
import subprocess
import sys

import pytest

import ottla
from ottla.model.ids import TopicPartition
from ottla.testing import Broker
from tests.cli.ottla_program import Run
from tests.cli.terminal import is_readable

T0 = 1_700_000_000_000


@pytest.fixture
def filled(cli_broker: Broker, topic: str) -> str:
    """Six records, a second apart, in turn in two partitions."""
    with ottla.Producer(bootstrap_servers=cli_broker.bootstrap_servers) as producer:
        for at in range(6):
            producer.send(
                topic,
                f"v{at}".encode(),
                f"k{at}".encode(),
                [("odd", str(at % 2).encode())],
                at % 2,
                T0 + at * 1000,
            )
        producer.flush()
    return topic


@pytest.mark.spec("TOOL-09")
def test_everything_there_is_now_is_shown(run: Run, filled: str) -> None:
    assert sorted(run("consume", filled).out.split()) == [f"v{at}" for at in range(6)]


@pytest.mark.spec("TOOL-11")
def test_one_partition_and_a_range_of_offsets_are_shown(run: Run, filled: str) -> None:
    shown = run("consume", f"{filled}:0", "--from", "@1", "--to", "@3", "--show", "offset,key")
    assert shown.out == "1\tk2\tv2\n2\tk4\tv4\n"
    assert run("consume", f"{filled}:0", "--from", "@3").out == ""


def test_a_range_of_times_is_shown(run: Run, filled: str) -> None:
    words = ("--from", T0 + 1500, "--to", "2023-11-14T22:13:24Z")
    assert sorted(run("consume", filled, *words).out.split()) == ["v2", "v3"]


def test_filters_and_a_number_leave_the_rest_out(run: Run, filled: str) -> None:
    words = ("--filter", "header.odd=1", "--filter", "value=[35]")
    assert run("consume", filled, *words).out == "v3\nv5\n"
    assert len(run("consume", filled, "-n", 2).out.split()) == 2


def test_a_group_goes_on_where_it_was(run: Run, filled: str, admin: ottla.Admin) -> None:
    words = ("consume", filled, "--group", f"g-{filled}")
    first = run(*words, "-n", 4).out.split()
    second = run(*words).out.split()
    assert len(first) == 4
    assert sorted(first + second) == [f"v{at}" for at in range(6)]
    committed = admin.list_group_offsets(f"g-{filled}").all()
    assert {one.partition: at.offset for one, at in committed.items()} == {0: 3, 1: 3}


def test_a_group_without_offsets_starts_where_from_says(run: Run, filled: str) -> None:
    latest = ("consume", filled, "--group", f"latest-{filled}", "--from", "latest")
    earliest = ("consume", filled, "--group", f"earliest-{filled}", "--from", "earliest")
    assert run(*latest).out == ""
    assert len(run(*earliest, "-n", 4).out.split()) == 4
    assert len(run(*earliest).out.split()) == 2  # what it has committed counts


def test_an_aborted_transaction_is_left_out_when_asked(
    run: Run, topic: str, cli_broker: Broker
) -> None:
    with ottla.Producer(
        bootstrap_servers=cli_broker.bootstrap_servers, transactional_id=f"c-{topic}"
    ) as producer:
        producer.init_transactions()
        producer.begin()
        producer.send(topic, b"undone", partition=0).result(20)
        producer.abort()
        with producer.transaction():
            producer.send(topic, b"done", partition=0)
    assert run("consume", topic).out == "undone\ndone\n"
    assert run("consume", topic, "--read-committed").out == "done\n"


def test_following_waits_for_more_until_it_is_interrupted(
    cli_broker: Broker, topic: str, admin: ottla.Admin
) -> None:
    at = ("-b", cli_broker.bootstrap_servers)
    words = [sys.executable, "-m", "ottla", "consume", topic, "--follow", "--from", "latest", *at]
    with (
        subprocess.Popen(words, stdout=subprocess.PIPE, preexec_fn=heed_interrupts) as program,
        ottla.Producer(bootstrap_servers=cli_broker.bootstrap_servers) as producer,
    ):
        assert program.stdout is not None
        # It shows only what comes after it has begun, so keep sending until it shows something.
        shown = b""
        while not shown:
            producer.send(topic, b"later", partition=0).result(20)
            shown = ready_line(program)
        program.send_signal(signal.SIGINT)
        program.stdout.read()
    assert shown == b"later\n"
    assert program.returncode == 0
    assert admin.list_offsets({TopicPartition(topic, 0): -1}).one().offset


def heed_interrupts() -> None:
    """What a shell starts in the background ignores them, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def ready_line(program: subprocess.Popen[bytes]) -> bytes:
    """A line if there is one within a while."""
    assert program.stdout is not None
    ready = is_readable(program.stdout.fileno(), 0.2)
    return program.stdout.readline() if ready else b""


def test_mistakes_are_said_in_a_line(run: Run, topic: str) -> None:
    consume = ("consume", topic)
    run(*consume, "--from", "@x").failed(2, "--from '@x': expected an offset")
    run(*consume, "--from", "noon").failed(2, "--from 'noon': expected a time")
    run(*consume, "--follow", "--to", "@1").failed(2, "--follow and --to")
    run(*consume, "--show", "kye").failed(2, "--show 'kye'")
    run(*consume, "--filter", "kye=x").failed(2, "--filter 'kye=x'")
    run(*consume, "--format", "xml").failed(2, "--format")
    run(*consume, "-n", "0").failed(2, "--max-messages")
    run(*consume, "--group", "g", "--from", "2h").failed(2, "--from 2h: a group starts at its")
    run(*consume, "--group", "g", "--to", "@1").failed(2, "--group: a group reads whole topics")
    run(*consume, "--set", "fetch.max.bites=1").failed(2, "did you mean fetch.max.bytes")
    run("consume", "nowhere").failed(1, "nowhere: unknown topic or partition")
    run("consume", "nowhere", "--group", "g").failed(1, "nowhere")
    run("consume").failed(2, "TOPIC")


def test_json_is_an_option_of_its_own_as_it_is_of_other_commands(run: Run, topic: str) -> None:
    run("produce", topic, stdin="x")
    [line] = run("consume", topic, "--json").out.splitlines()
    assert line == run("consume", topic, "--format", "json").out.strip()


def test_numbers_and_times_that_cannot_be_are_said_in_a_line(run: Run, topic: str) -> None:
    huge = "9" * 30
    run("consume", topic, "--from", f"@{huge}").failed(2, "too large")
    run("consume", topic, "--from", huge).failed(2, "too large")
    run("consume", topic, "--from", "99999999h").failed(2, "before 1970; use earliest")
    run("consume", topic, "-n", huge).failed(2, "--max-messages")


def test_sigterm_makes_a_member_leave_its_group(
    cli_broker: Broker, admin: ottla.Admin, topic: str, run: Run
) -> None:
    run("produce", topic, stdin="x")
    words = ["consume", topic, "--group", f"left-{topic}", "--follow"]
    with subprocess.Popen(
        [sys.executable, "-m", "ottla", *words, "-b", cli_broker.bootstrap_servers],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"x\n"
            assert len(admin.describe_group(f"left-{topic}").members) == 1
            process.terminate()
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, said) == (0, b"")
    assert admin.describe_group(f"left-{topic}").members == ()
    committed = admin.list_group_offsets(f"left-{topic}").all()
    assert sum(one.offset for one in committed.values()) == 1, "what was shown is committed"
