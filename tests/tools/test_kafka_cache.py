"""What the cache of Kafka's jars says and asks for, without the network."""

from __future__ import annotations

import pytest

from tools import kafka_cache


def test_a_generated_project_names_artifacts_and_no_registry() -> None:
    for artifacts in kafka_cache.KINDS.values():
        text = kafka_cache.pom(artifacts)
        assert "://" not in text
        for artifact in artifacts:
            assert f"<artifactId>{artifact.name}</artifactId>" in text
            assert f"<version>{artifact.version}</version>" in text


def test_every_kind_can_say_what_went_wrong() -> None:
    for kind, artifacts in kafka_cache.KINDS.items():
        if kind == "spark-connector":
            continue  # it speaks through Spark's own logger
        assert any(artifact.name.startswith("slf4j-") for artifact in artifacts)


@pytest.mark.parametrize("command", ["mvnx", "javax"])
def test_a_missing_program_is_named_with_the_way_to_get_it(command: str) -> None:
    with pytest.raises(kafka_cache.Missing, match=rf"{command} is missing; as root: apt-get"):
        kafka_cache.program(command)


def test_an_unknown_tool_is_told_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert kafka_cache.main(["kafka-nonsense"]) == 2
    assert "kafka-topics" in capsys.readouterr().err
