"""A difference between two replies is noticed, and named by where it is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interop.answers.compare import MISSING, differences
from tests.interop.answers.differences import MEANT, Meant
from tests.interop.answers.plain import Labels
from tests.interop.answers.scenario import ask
from tests.interop.answers.side import KEYS, encode, resolved

PART = {"partition_index": 0, "error_code": "none", "leader_epoch": 0}


def reply(**change: Any) -> dict[str, Any]:
    return {"throttle_time": 0, "topics": [{"name": "t", "partitions": [{**PART, **change}]}]}


def test_replies_that_are_alike_do_not_differ() -> None:
    assert differences(reply(), reply()) == []


@pytest.mark.parametrize(("field", "value"), [("error_code", "other"), ("leader_epoch", None)])
def test_a_field_that_differs_is_named(field: str, value: object) -> None:
    [found] = differences(reply(), reply(**{field: value}))
    assert found == (f"topics/t/partitions/0/{field}", PART[field], value)


def test_null_and_nothing_are_not_the_same_as_empty() -> None:
    assert len(differences({"a": None}, {"a": []})) == 1
    assert len(differences({"a": 0}, {"a": False})) == 1


def test_what_only_one_side_has_is_named_on_either() -> None:
    more = {"topics": [{"name": "t"}, {"name": "u"}]}
    less = {"topics": [{"name": "t"}]}
    assert differences(more, less) == [("topics/u", {"name": "u"}, MISSING)]
    assert differences(less, more) == [("topics/u", MISSING, {"name": "u"})]


def test_elements_are_matched_by_name_and_repeats_are_counted() -> None:
    there = {"topics": [{"name": "t"}, {"name": "u"}]}
    back = {"topics": [{"name": "u"}, {"name": "t"}]}
    assert differences(there, back) == []
    assert len(differences(there, {"topics": [*back["topics"], {"name": "t"}]})) == 1


def test_ids_are_told_apart_by_when_they_appear() -> None:
    labels = Labels()
    assert [labels.of("member id", id) for id in ("x", "y", "x")] == [
        "<member id 1>",
        "<member id 2>",
        "<member id 1>",
    ]


def test_a_meant_difference_covers_its_api_path_and_scenario_only() -> None:
    one = Meant("Fetch", "responses/*/error_code", "why", "fetch *")
    [found] = differences(
        {"responses": {"t": {"error_code": 1}}}, {"responses": {"t": {"error_code": 2}}}
    )
    assert one.covers("fetch oddly", "Fetch", found)
    assert not one.covers("produce", "Fetch", found)
    assert not one.covers("fetch oddly", "Produce", found)
    assert not one._replace(path="responses/*/offset").covers("fetch oddly", "Fetch", found)
    assert all(entry.reason for entry in MEANT)


def test_a_field_that_no_version_has_is_a_mistake_of_the_scenario() -> None:
    with pytest.raises(AssertionError, match="no version has"):
        encode(KEYS["Heartbeat"], 4, {"grop_id": "g"})


def test_names_are_put_in_wherever_they_stand() -> None:
    step = ask("Heartbeat", 4, group_id="$g", member_id="m")
    assert resolved(step.fields, lambda name: f"{name}-1") == {"group_id": "g-1", "member_id": "m"}
