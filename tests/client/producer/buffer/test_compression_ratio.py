"""How much goes into a batch that will be compressed."""

from __future__ import annotations

import pytest

from ottla.client.producer.buffer.record_intake import CompressionRatios


def test_without_a_codec_a_batch_takes_its_own_size() -> None:
    ratios = CompressionRatios("none")
    ratios.learn("t", 1_000, 100)
    assert ratios.room("t", 500) == 500


@pytest.mark.spec("PRD-20")
def test_good_news_are_believed_slowly_and_bad_news_at_once() -> None:
    ratios = CompressionRatios("zstd")
    assert ratios.room("t", 1_000) == 1_000
    rooms = []
    for _ in range(40):
        ratios.learn("t", 1_000, 200)
        rooms.append(ratios.room("t", 1_000))
    assert rooms == sorted(rooms)
    assert rooms[-1] == pytest.approx(1_000 / 0.21, abs=1)
    ratios.learn("t", 1_000, 990)
    assert ratios.room("t", 1_000) == 1_000
    assert ratios.room("another", 1_000) == 1_000


def test_no_batch_grows_without_bound() -> None:
    ratios = CompressionRatios("zstd")
    for _ in range(100):
        ratios.learn("t", 1_000_000, 1)
    assert ratios.room("t", 1_000) <= 10_000
    ratios.learn("t", 0, 0)
