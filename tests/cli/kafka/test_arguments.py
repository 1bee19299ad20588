from __future__ import annotations

from pathlib import Path

import pytest

from ottla.cli.kafka.arguments import Arguments, first_given, int16, int64, key_values, properties
from ottla.model.errors import UserError


@pytest.fixture
def parser() -> Arguments:
    parser = Arguments("kafka-some.sh", "Does something.")
    parser.cluster(broker_list=True)
    parser.flag("--one")
    parser.flag("--two")
    return parser


def test_a_mistake_is_said_with_the_usage_and_exit_code_1(
    parser: Arguments, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as done:
        parser.parse_args(["--three"])
    assert done.value.code == 1
    err = capsys.readouterr().err
    assert err.startswith("unrecognized arguments: --three\nusage: kafka-some.sh")


def test_exactly_one_action_is_taken(parser: Arguments, capsys: pytest.CaptureFixture[str]) -> None:
    options = parser.parse_args(["--one"])
    assert parser.exactly_one(options, ("one", "two"), "one action") == "one"
    for words in ([], ["--one", "--two"]):
        with pytest.raises(SystemExit):
            parser.exactly_one(parser.parse_args(words), ("one", "two"), "one action")
        assert capsys.readouterr().err.startswith("one action\n")


def test_properties_come_from_options_and_files(parser: Arguments, tmp_path: Path) -> None:
    assert key_values(["a=1", "b = 2"], "--property") == {"a": "1", "b": "2"}
    with pytest.raises(UserError, match="--property 'a': expected key=value"):
        key_values(["a"], "--property")
    file = tmp_path / "client.properties"
    file.write_text("client.id=me\n# a remark\n")
    assert properties(file) == {"client.id": "me"}
    assert properties(None) == {}
    with pytest.raises(UserError, match="No such file"):
        properties(tmp_path / "none")
    options = parser.parse_args(["--broker-list", "b:1"])
    assert first_given(options, "bootstrap_server", "broker_list") == "b:1"
    assert first_given(options, "zookeeper") is None


@pytest.mark.parametrize("text", ["9223372036854775808", "-9223372036854775809", "9" * 5_000])
def test_a_number_that_no_field_can_hold_is_refused_with_its_range(
    parser: Arguments, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser.add_argument("--offset", type=int64)
    with pytest.raises(SystemExit):
        parser.parse_args([f"--offset={text}"])
    err = capsys.readouterr().err
    assert "is out of range; allowed are -9223372036854775808 to 9223372036854775807" in err
    assert len(err) < 500


def test_numbers_are_read_to_the_ends_of_their_range(parser: Arguments) -> None:
    parser.add_argument("--offset", type=int64)
    parser.add_argument("--replicas", type=int16)
    options = parser.parse_args(["--offset", "9223372036854775807", "--replicas=-32768"])
    assert (options.offset, options.replicas) == (2**63 - 1, -(2**15))


def test_what_is_no_number_is_refused(
    parser: Arguments, capsys: pytest.CaptureFixture[str]
) -> None:
    parser.add_argument("--offset", type=int64)
    with pytest.raises(SystemExit):
        parser.parse_args(["--offset", "1_000"])
    assert "--offset: expected a whole number, not '1_000'" in capsys.readouterr().err
