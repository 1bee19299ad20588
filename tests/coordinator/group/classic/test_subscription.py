"""What a consumer's metadata says it reads."""

from __future__ import annotations

import pytest

from ottla.coordinator.group.classic.group import subscribed_topics

TOPICS = b"\0\0\0\2\0\1a\0\2bc"


@pytest.mark.spec("GRP-69")
@pytest.mark.parametrize("version", [0, 1, 2, 3, 9])
def test_topics_are_read_from_every_version(version: int) -> None:
    metadata = version.to_bytes(2, "big") + TOPICS + b"\xff\xff\xff\xff and more"
    assert subscribed_topics(metadata) == frozenset({"a", "bc"})


@pytest.mark.parametrize("metadata", [b"", b"\0", b"range", b"\0\0\0\0\0\5\0\1a"])
def test_what_cannot_be_read_is_not_guessed(metadata: bytes) -> None:
    assert subscribed_topics(metadata) is None
