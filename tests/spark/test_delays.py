"""How old a record must be before it is read."""

from __future__ import annotations

import pytest

from ottla.model.clock import WallMs
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition as TP
from ottla.spark.delays import Delays, parse_delays

A, B = TP("a", 0), TP("b", 1)


@pytest.mark.spec("APP-15")
def test_a_delay_is_for_every_topic_or_for_those_that_are_named() -> None:
    everywhere = parse_delays("d", "5s")
    assert everywhere.youngest_ms([A, B], WallMs(60_000)) == {A: 55_000, B: 55_000}
    by_topic = parse_delays("d", '{"a": "1m"}')
    assert by_topic.youngest_ms([A, B], WallMs(60_000)) == {A: 0}, "the other one does not wait"
    assert Delays().youngest_ms([A, B], WallMs(60_000)) == {}


@pytest.mark.parametrize("text", ["soon", "{", '{"a": 5}', '{"a": "soon"}', '{"a": null}'])
def test_what_is_no_time_is_refused_by_the_name_of_the_option(text: str) -> None:
    with pytest.raises(UserError, match=r"^ottla\.delay"):
        parse_delays("ottla.delay", text)


def test_a_topic_that_is_not_read_has_no_delay() -> None:
    with pytest.raises(UserError, match=r"^d: a is not read; expected one of b"):
        Delays(by_topic_ms={"a": 1}).check("d", ["b"])
    Delays(by_topic_ms={"a": 1}).check("d", ["a", "b"])
    Delays(by_topic_ms={"a": 1}).check("d", [])  # a pattern names none
