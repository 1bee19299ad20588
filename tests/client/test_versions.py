"""The newest version that both sides speak."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ottla.client.broker_connection import Versions
from ottla.client.errors import UnsupportedVersion

PRODUCE = 0


@pytest.mark.parametrize(
    ("offered", "at_most", "picked"),
    [
        ((0, 9), None, 9),
        ((0, 99), None, 13),
        ((0, 99), 11, 11),
        ((5, 9), 7, 7),
        ((13, 20), None, 13),
    ],
)
def test_the_newest_common_version_is_picked(
    offered: tuple[int, int], at_most: int | None, picked: int
) -> None:
    assert Versions({PRODUCE: offered}).pick(PRODUCE, at_most) == picked


@pytest.mark.parametrize(
    ("ranges", "said"),
    [
        ({PRODUCE: (0, 2)}, "supports versions 0 to 2, this client supports 3 to 13"),
        ({}, "no common version of produce: the broker does not support it"),
        ({99_999: (0, 2)}, "does not support it"),
    ],
)
def test_without_one_both_ranges_are_named(ranges: dict[int, tuple[int, int]], said: str) -> None:
    with pytest.raises(UnsupportedVersion) as told:
        Versions(ranges).pick(PRODUCE)
    assert said in str(told.value)


def test_an_api_nobody_knows_is_refused_too() -> None:
    with pytest.raises(UnsupportedVersion, match="api 12345"):
        Versions({}).pick(12_345)


def test_a_reply_tells_ranges_and_features() -> None:
    versions = Versions.of(
        SimpleNamespace(
            api_keys=[SimpleNamespace(api_key=3, min_version=0, max_version=12)],
            finalized_features=[SimpleNamespace(name="transaction.version", max_version_level=2)],
            supported_features=[
                SimpleNamespace(name="transaction.version", min_version=0, max_version=3)
            ],
        )
    )
    assert versions.ranges == {3: (0, 12)}
    assert versions.finalized == {"transaction.version": 2}
    assert versions.supported == {"transaction.version": (0, 3)}
    assert versions.offers(3, 12)
    assert not versions.offers(3, 13)
    assert not versions.offers(4)
