from __future__ import annotations

import pytest

import ottla
from ottla.testing import Broker
from tests.cli.ottla_program import Run

CONSUMER = "kafka-console-consumer.sh"


@pytest.fixture
def filled(cli_broker: Broker, topic: str) -> str:
    with ottla.Producer(bootstrap_servers=cli_broker.bootstrap_servers) as producer:
        for at in range(4):
            producer.send(topic, f"v{at}".encode(), f"k{at}".encode(), partition=at % 2)
        producer.flush()
    return topic


@pytest.mark.spec("TOOL-09")
def test_everything_is_shown_from_the_beginning(run_kafka: Run, filled: str) -> None:
    words = ("--topic", filled, "--from-beginning", "--max-messages", 4)
    ran = run_kafka(CONSUMER, *words, "--property", "print.key=true")
    assert sorted(ran.out.splitlines()) == [f"k{at}\tv{at}" for at in range(4)]
    assert ran.err == "Processed a total of 4 messages\n"


def test_without_it_only_what_comes_is_shown(run_kafka: Run, filled: str) -> None:
    ran = run_kafka(CONSUMER, "--topic", filled, "--timeout-ms", 1)
    assert (ran.code, ran.out, ran.err) == (0, "", "Processed a total of 0 messages\n")


@pytest.mark.spec("TOOL-11")
def test_one_partition_is_shown_from_an_offset(run_kafka: Run, filled: str) -> None:
    words = ("--topic", filled, "--partition", 1, "--max-messages", 1, "--offset")
    assert run_kafka(CONSUMER, *words, 1).out == "v3\n"
    assert run_kafka(CONSUMER, *words, "earliest").out == "v1\n"


def test_a_group_commits_what_was_shown(run_kafka: Run, admin: ottla.Admin, filled: str) -> None:
    words = ("--topic", filled, "--group", f"k-{filled}", "--from-beginning")
    shown = "".join(run_kafka(CONSUMER, *words, "--max-messages", 2).out for _ in range(2))
    assert sorted(shown.split()) == ["v0", "v1", "v2", "v3"]
    committed = admin.list_group_offsets(f"k-{filled}").all()
    assert sum(one.offset for one in committed.values()) == 4


def test_topics_may_be_included_by_a_pattern(run_kafka: Run, filled: str) -> None:
    words = ("--include", f"{filled},nothing-like-it", "--from-beginning", "--max-messages", 4)
    assert len(run_kafka(CONSUMER, *words).out.split()) == 4


@pytest.mark.spec("TOOL-10")
def test_the_offsets_topic_is_shown_by_its_formatter(
    run_kafka: Run, topic: str, group: str
) -> None:
    words = ("--topic", "__consumer_offsets", "--from-beginning", "--timeout-ms", 300)
    old = "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter"
    shown = run_kafka(CONSUMER, *words, "--formatter", old).out
    assert f"[{group},{topic},0]::OffsetAndMetadata(offset=0, " in shown


def test_mistakes_are_said_with_exit_code_1(run_kafka: Run, topic: str) -> None:
    run_kafka(CONSUMER).failed(1, "Exactly one of --include/--topic is required")
    run_kafka(CONSUMER, "--topic", topic, "--offset", 1).failed(1, "The partition is required")
    place = ("--topic", topic, "--partition", 0, "--offset", "x")
    run_kafka(CONSUMER, *place).failed(1, "offset value 'x' is incorrect")
    run_kafka(CONSUMER, "--topic", topic, "--formatter", "x").failed(1, "--formatter x: expected")
    run_kafka(CONSUMER, "--topic", "nowhere", "--timeout-ms", 1).failed(1, "nowhere")
