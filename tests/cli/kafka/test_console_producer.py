from __future__ import annotations

from pathlib import Path

import pytest

from ottla.cli.kafka import main
from ottla.testing import Broker
from tests.cli.ottla_program import Run

PRODUCER = "kafka-console-producer.sh"


@pytest.mark.spec("TOOL-08")
def test_each_line_of_stdin_is_a_record(run: Run, run_kafka: Run, topic: str) -> None:
    ran = run_kafka(PRODUCER, "--topic", topic, stdin="one\ntwo\n")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert sorted(run("consume", topic).out.split()) == ["one", "two"]


@pytest.mark.spec("TOOL-08")
def test_the_old_name_of_the_option_works(
    run: Run, cli_broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("topics", "list", stdin="one\n")  # puts the line on stdin, and reads nothing of it
    words = ["--broker-list", cli_broker.bootstrap_servers, "--topic", topic]
    assert main.run(PRODUCER, words) == 0
    assert run("consume", topic).out == "one\n"


def test_properties_say_how_lines_are_read_and_sent(
    run: Run, run_kafka: Run, topic: str, tmp_path: Path
) -> None:
    config = tmp_path / "producer.properties"
    config.write_text("linger.ms=1\n")
    words = ["--property", "parse.key=true", "--reader-property", "parse.headers=true"]
    words += ["--compression-codec", "--request-required-acks", "1", "--sync"]
    words += ["--producer.config", str(config), "--producer-property", "client.id=console"]
    assert run_kafka(PRODUCER, "--topic", topic, *words, stdin="h:1\tk\tv\n").code == 0
    assert run("consume", topic, "--show", "headers,key").out == "h=1\tk\tv\n"


def test_mistakes_are_said_with_exit_code_1(run_kafka: Run, topic: str) -> None:
    run_kafka(PRODUCER).failed(1, "--topic")
    key = ("--topic", topic, "--property", "parse.key=true")
    run_kafka(PRODUCER, *key, stdin="x\n").failed(1, "No key separator found on line number 1")
    run_kafka(PRODUCER, "--topic", topic, "--property", "x").failed(1, "--property 'x'")
    codec = ("--topic", topic, "--compression-codec", "rar")
    run_kafka(PRODUCER, *codec).failed(1, "compression.type='rar'")
    large = ("--topic", topic, "--producer-property", "max.request.size=2000")
    run_kafka(PRODUCER, *large, stdin="x" * 9000).failed(1, "1 records were not sent")
