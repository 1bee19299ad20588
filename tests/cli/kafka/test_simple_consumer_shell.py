from __future__ import annotations

import pytest

from ottla.cli.kafka import main
from ottla.testing import Broker
from tests.cli.ottla_program import Run

SHELL = "kafka-simple-consumer-shell.sh"


@pytest.mark.spec("TOOL-11")
def test_one_partition_of_the_offsets_topic_is_read(
    run: Run,
    cli_broker: Broker,
    topic: str,
    group: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    words = ["--topic", "__consumer_offsets", "--partition", "0"]
    words += ["--broker-list", cli_broker.bootstrap_servers, "--no-wait-at-logend"]
    words += [
        "--formatter",
        "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter",
    ]
    assert main.run(SHELL, words) == 0
    assert f"[{group},{topic},1]::OffsetAndMetadata(" in capfd.readouterr().out


def test_options_are_passed_on(
    run: Run, cli_broker: Broker, topic: str, capfd: pytest.CaptureFixture[str]
) -> None:
    run("produce", topic, "--partition", 1, "-K", ":", stdin="k:v\nk:w\n")
    words = ["--topic", topic, "--partition", "1", "--max-messages", "1", "--offset", "1"]
    words += ["--property", "print.key=true", "--broker-list", cli_broker.bootstrap_servers]
    assert main.run(SHELL, words) == 0
    assert capfd.readouterr().out == "k\tw\n"
    assert main.run(SHELL, []) == 1
