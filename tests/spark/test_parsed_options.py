"""Texts of options become numbers, flags and times, or an error that names the option."""

from __future__ import annotations

import pytest

from ottla.config.client import ConsumerConfig, ProducerConfig
from ottla.model.errors import UserError
from ottla.spark.parsed_options import ParsedOptions, parse_duration_ms

KNOWN = ("maxOffsets", "includeHeaders")


def test_names_are_known_in_any_case_and_texts_are_trimmed() -> None:
    given = ParsedOptions({"MAXOFFSETS": " 7 "}, KNOWN)
    assert given.text("maxOffsets") == "7"
    assert given.number("maxOffsets") == 7
    assert given.text("includeHeaders") is None


def test_a_name_nobody_knows_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match=r"maxoffset: .*did you mean maxOffsets"):
        ParsedOptions({"maxOffset": "7"}, KNOWN)


@pytest.mark.parametrize("name", ["checkpointLocation", "queryName", "path", "spark.x", "__x"])
def test_what_spark_adds_by_itself_is_let_through(name: str) -> None:
    ParsedOptions({name: "x"}, KNOWN)


@pytest.mark.parametrize("text", ["", "seven", "0", "7.0", "-7", "9223372036854775808"])
def test_a_number_that_is_none_is_refused_by_name(text: str) -> None:
    with pytest.raises(UserError, match="maxOffsets="):
        ParsedOptions({"maxOffsets": text}, KNOWN).number("maxOffsets")


def test_a_flag_is_true_or_false() -> None:
    assert ParsedOptions({"includeHeaders": "TRUE"}, KNOWN).flag("includeHeaders", False)
    assert ParsedOptions({}, KNOWN).flag("includeHeaders", True)
    with pytest.raises(UserError, match="includeHeaders='yes'"):
        ParsedOptions({"includeHeaders": "yes"}, KNOWN).flag("includeHeaders", False)


def test_settings_of_the_client_are_taken_out_and_those_we_decide_refused() -> None:
    given = ParsedOptions({"kafka.Bootstrap.Servers": "a:1", "kafka.acks": "1"}, KNOWN)
    assert given.client({}, "sink", ProducerConfig) == {"bootstrap.servers": "a:1", "acks": "1"}
    with pytest.raises(UserError, match=r"kafka.acks is set by the sink itself: because"):
        given.client({"acks": "because"}, "sink", ProducerConfig)
    with pytest.raises(UserError, match=r"kafka\.bootstrap\.servers is missing"):
        ParsedOptions({}, KNOWN).client({}, "sink", ProducerConfig)


@pytest.mark.parametrize(
    "name",
    [
        "metric.reporters",
        "ssl.engine.factory.class",
        "security.providers",
        "acks",
        "my.url",
    ],
)
def test_settings_of_java_clients_that_have_no_effect_here_are_accepted(name: str) -> None:
    given = ParsedOptions({"kafka.bootstrap.servers": "a:1", f"kafka.{name}": "x"}, KNOWN)
    assert given.client({}, "source", ConsumerConfig) == {"bootstrap.servers": "a:1"}


def test_properties_of_a_table_are_let_through_and_a_mistake_in_its_options_is_not() -> None:
    table = {"provider": "ottla", "owner": "ann", "transient_lastDdlTime": "1", "a": "b"}
    assert ParsedOptions({**table, "maxOffsets": "7"}, KNOWN).number("maxOffsets") == 7
    with pytest.raises(UserError, match="did you mean maxOffsets"):
        ParsedOptions({**table, "maxOffset": "7"}, KNOWN)


@pytest.mark.parametrize(
    ("text", "ms"),
    [("15m", 900_000), ("30s", 30_000), ("500ms", 500), ("2h", 7_200_000), ("1d", 86_400_000),
     ("7", 7), ("3 min", 180_000), ("2000us", 2)],
)  # fmt: skip
def test_times_are_read_as_spark_writes_them(text: str, ms: int) -> None:
    assert parse_duration_ms("maxTriggerDelay", text) == ms


@pytest.mark.parametrize("text", ["", "soon", "5 fortnights", "-1s", "1.5m"])
def test_a_time_that_is_none_is_refused_by_name(text: str) -> None:
    with pytest.raises(UserError, match="maxTriggerDelay="):
        parse_duration_ms("maxTriggerDelay", text)
