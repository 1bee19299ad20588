"""Our copies of Kafka's commands beside Kafka's own, on one broker: what they print is the same."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator

import pytest

import ottla
from ottla.cli.kafka import main
from ottla.testing import Broker
from tests.client.admin.group_members import joined
from tests.interop.tools_in_one import KafkaTools
from tools import kafka_cache

# It waited for ever in native code once, where no signal is heard: let a thread end it, and show.
pytestmark = pytest.mark.timeout(120, method="thread")

TOPIC = "compared"
GROUP = "compared-group"

Ours = Callable[..., str]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"offsets.topic.num.partitions": "1"}) as broker:
        fill(broker)
        yield broker


@pytest.fixture(scope="module")
def theirs(broker: Broker) -> Iterator[KafkaTools]:
    try:
        tools = KafkaTools(broker.bootstrap_servers)
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
    yield tools
    tools.close()


@pytest.fixture
def ours(broker: Broker, capfd: pytest.CaptureFixture[str]) -> Ours:
    """Runs one of ours that must succeed; what it printed."""

    def run(tool: str, *words: str) -> str:
        capfd.readouterr()
        at = ("--bootstrap-server", broker.bootstrap_servers)
        assert main.run(f"{tool}.sh", [*words, *at]) == 0
        return capfd.readouterr().out

    return run


def fill(broker: Broker) -> None:
    at = broker.bootstrap_servers
    with ottla.Admin(bootstrap_servers=at) as admin:
        admin.create_topic(TOPIC, partitions=2, configs={"retention.ms": "-1"})
        admin.create_topic("other-topic")
        partitions = [ottla.TopicPartition(TOPIC, at) for at in range(2)]
        with ottla.Producer(bootstrap_servers=at) as producer:
            for number in range(6):
                headers = [("h", b"1"), ("n", None)] if number % 2 else None
                key = None if number == 3 else f"k{number}".encode()
                producer.send(TOPIC, f"v{number}".encode(), key, headers, 0, 1_700_000_000_000)
            producer.send(TOPIC, None, b"tombstone", partition=0)
            producer.flush()
        admin.alter_group_offsets(GROUP, dict(zip(partitions, (4, 0), strict=True))).all()


@pytest.mark.spec("TOOL-05", "TOOL-06")
@pytest.mark.parametrize(
    "words",
    [
        ("--list",),
        ("--describe", "--topic", TOPIC),
        ("--describe", "--topic", ".*-topic"),
        ("--describe", "--under-replicated-partitions"),
        ("--describe", "--topics-with-overrides", "--topic", TOPIC),
    ],
)
def test_topics_look_the_same(ours: Ours, theirs: KafkaTools, words: tuple[str, ...]) -> None:
    assert sorted_configs(ours("kafka-topics", *words)) == sorted_configs(
        theirs.run("kafka-topics", *words).stdout  # whose end the driver takes for a failure
    )


def sorted_configs(text: str) -> list[str]:
    """Lines, with the settings of a topic in order: Kafka's tool shows them in none."""
    lines = []
    for line in text.splitlines():
        head, mark, configs = line.partition("\tConfigs: ")
        lines.append(head + mark + ",".join(sorted(configs.split(","))))
    return lines


@pytest.mark.spec("TOOL-12")
@pytest.mark.parametrize(
    "words",
    [
        ("--list",),
        ("--list", "--state"),
        ("--describe", "--group", GROUP),
        ("--describe", "--group", GROUP, "--offsets", "--verbose"),
        ("--describe", "--group", GROUP, "--state"),
        ("--reset-offsets", "--group", GROUP, "--all-topics", "--to-earliest", "--dry-run"),
        ("--reset-offsets", "--group", GROUP, "--topic", f"{TOPIC}:0", "--shift-by", "-2"),
        ("--reset-offsets", "--group", GROUP, "--all-topics", "--to-latest", "--export"),
    ],
)
def test_groups_without_members_look_the_same(
    ours: Ours, theirs: KafkaTools, words: tuple[str, ...]
) -> None:
    said = theirs.done("kafka-consumer-groups", *words)
    told = ours("kafka-consumer-groups", *words)
    if "--list" in words:  # Kafka's lists groups in no order
        said, told = ("\n".join(sorted(text.split("\n"))) for text in (said, told))
    assert told == said


@pytest.mark.spec("TOOL-12")
def test_groups_with_members_look_the_same(ours: Ours, theirs: KafkaTools, broker: Broker) -> None:
    member = joined(broker, TOPIC, group_instance_id="steady")
    for words in (
        ("--describe", "--group", TOPIC),
        ("--describe", "--group", TOPIC, "--members"),
        ("--describe", "--group", TOPIC, "--members", "--verbose"),
        ("--describe", "--group", TOPIC, "--state"),
        ("--list", "--state", "stable"),
    ):
        said = theirs.done("kafka-consumer-groups", *words)
        assert ours("kafka-consumer-groups", *words) == said, words
        member.poll(0)
    member.close()


@pytest.mark.spec("TOOL-18")
@pytest.mark.parametrize(
    "words",
    [
        ("--describe", "--topic", TOPIC),
        ("--describe", "--topic", TOPIC, "--all"),
        ("--describe", "--entity-type", "brokers"),
        ("--describe", "--entity-type", "topics", "--entity-name", "other-topic"),
        ("--describe", "--group", GROUP, "--all"),
        ("--describe", "--group", "nobody"),
        ("--describe", "--group", "nobody", "--all"),
    ],
)
def test_settings_look_the_same(ours: Ours, theirs: KafkaTools, words: tuple[str, ...]) -> None:
    assert ours("kafka-configs", *words) == theirs.done("kafka-configs", *words)


@pytest.mark.spec("TOOL-18", "SEC-07")
@pytest.mark.parametrize(
    "words",
    [
        ("--entity-type", "users", "--entity-name", "q u"),
        ("--entity-type", "users", "--entity-default"),
        ("--entity-type", "clients", "--entity-name", "q"),
        ("--entity-type", "users", "--entity-name", "q", "--entity-type", "clients",
         "--entity-default"),
    ],
)  # fmt: skip
def test_quotas_look_the_same(ours: Ours, theirs: KafkaTools, words: tuple[str, ...]) -> None:
    quotas = ("--add-config", "producer_byte_rate=900000000,request_percentage=150.5")
    undo = ("--delete-config", "producer_byte_rate,request_percentage")
    said = theirs.done("kafka-configs", "--alter", *words, *quotas)
    shown = ours("kafka-configs", "--describe", *words)
    assert "producer_byte_rate" in shown
    assert shown == theirs.done("kafka-configs", "--describe", *words)
    ours("kafka-configs", "--alter", *words, *undo)
    assert "producer_byte_rate" not in theirs.done("kafka-configs", "--describe", *words)
    assert ours("kafka-configs", "--alter", *words, *quotas) == said
    theirs.done("kafka-configs", "--alter", *words, *undo)


@pytest.mark.spec("TOOL-18")
def test_changed_settings_of_groups_look_the_same(ours: Ours, theirs: KafkaTools) -> None:
    names = ("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms")
    change = ("--add-config", f"{names[0]}=50000,{names[1]}=7000")
    every_one = ("--describe", "--entity-type", "groups")
    for tool, group in ((ours, GROUP), (theirs.done, "not there/ 100 %")):
        said = tool("kafka-configs", "--alter", "--group", group, *change)
        assert said == f"Completed updating config for group {group}.\n"
    shown = ours("kafka-configs", *every_one)
    assert by_group(shown) == by_group(theirs.done("kafka-configs", *every_one))
    assert shown.count("=50000 sensitive=false") == 2
    for tool, group in ((theirs.done, GROUP), (ours, "not there/ 100 %")):
        tool("kafka-configs", "--alter", "--group", group, "--delete-config", ",".join(names))
    shown = ours("kafka-configs", *every_one)
    assert by_group(shown) == by_group(theirs.done("kafka-configs", *every_one))
    assert "50000" not in shown


def by_group(text: str) -> list[str]:
    """Settings of one group each, in order: Kafka's tool shows groups in none."""
    return sorted(re.split(r"\n(?=\S)", text.rstrip("\n")))


@pytest.mark.spec("TOOL-09")
@pytest.mark.parametrize(
    "properties",
    [
        (),
        ("print.key=true",),
        ("print.timestamp=true", "print.partition=true", "print.offset=true"),
        ("print.headers=true", "print.key=true", "key.separator=|", "null.literal=NIL"),
        ("print.value=false", "headers.separator=&", "print.headers=true"),
    ],
)
def test_records_look_the_same(ours: Ours, theirs: KafkaTools, properties: tuple[str, ...]) -> None:
    words = ["--topic", TOPIC, "--partition", "0", "--offset", "earliest", "--max-messages", "7"]
    for given in properties:
        words += ["--formatter-property", given]
    assert ours("kafka-console-consumer", *words) == theirs.done("kafka-console-consumer", *words)


@pytest.mark.spec("TOOL-10")
def test_committed_offsets_look_the_same(ours: Ours, theirs: KafkaTools) -> None:
    formatter = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
    words = ["--topic", "__consumer_offsets", "--partition", "0", "--offset", "earliest"]
    words += ["--max-messages", "2", "--formatter", formatter]
    said = theirs.done("kafka-console-consumer", *words)
    assert GROUP in said
    # Kafka's puts no ends of lines between them, which no one can wish for.
    assert ours("kafka-console-consumer", *words).replace("\n", "") == said


@pytest.mark.spec("TOOL-08")
def test_what_our_producer_sends_their_consumer_shows(
    ours: Ours, theirs: KafkaTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "h:1,i:NULL\tk\tv\nNULL\tNULL\tNULL\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    reader = ("parse.key=true", "parse.headers=true", "null.marker=NULL")
    words = [word for given in reader for word in ("--property", given)]
    ours("kafka-console-producer", "--topic", "sent-by-ours", *words, "--compression-codec", "lz4")
    shown = [
        word
        for given in ("print.key=true", "print.headers=true")
        for word in ("--formatter-property", given)
    ]
    place = ("--topic", "sent-by-ours", "--partition", "0", "--offset", "earliest")
    said = theirs.done("kafka-console-consumer", *place, "--max-messages", "2", *shown)
    assert said == "h:1,i:null\tk\tv\nNO_HEADERS\tnull\tnull\n"
