from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer.position.reset_policy import EARLIEST, LATEST, ResetPolicy, reset_policy
from ottla.model.clock import WallMs
from ottla.model.errors import UserError

NOW = WallMs(1_700_000_000_000)


@pytest.mark.spec("CON-12", "CFG-110")
@pytest.mark.parametrize(
    ("text", "timestamp"),
    [
        ("earliest", EARLIEST),
        ("latest", LATEST),
        ("none", None),
        ("by_duration:PT1H30M", NOW - 5_400_000),
        ("by_duration:P2D", NOW - 172_800_000),
        ("by_duration:P1DT2H3M4.5S", NOW - 93_784_500),
    ],
)
def test_a_policy_names_the_time_to_ask_for(text: str, timestamp: int | None) -> None:
    assert reset_policy(text).timestamp(NOW) == timestamp


@pytest.mark.parametrize(
    "text", ["", "oldest", "by_duration:", "by_duration:P", "by_duration:PT", "by_duration:1h"]
)
def test_what_is_no_policy_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UserError, match=r"expected earliest, latest, none.*PT1H30M"):
        reset_policy(text)


@given(st.integers(0, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_durations_add_up(days: int, hours: int, minutes: int, seconds: int) -> None:
    text = f"by_duration:P{days}DT{hours}H{minutes}M{seconds}S"
    total_s = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    assert reset_policy(text) == ResetPolicy("by_duration", total_s * 1_000)
