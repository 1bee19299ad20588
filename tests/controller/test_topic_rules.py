"""What a topic may be called."""

from __future__ import annotations

import pytest

from ottla.controller import topic_rules
from ottla.model.errors import ErrorCode, KafkaError


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "x" * 249, "__consumer_offsets"])
def test_a_legal_name_passes(name: str) -> None:
    topic_rules.check_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "x" * 250, "a b", "ä", "a\n", "a:b"])
def test_an_illegal_name_is_refused(name: str) -> None:
    with pytest.raises(KafkaError) as refused:
        topic_rules.check_name(name)
    assert refused.value.code is ErrorCode.invalid_topic_exception


def by_spelling(*names: str) -> dict[str, str]:
    return {topic_rules.metric_name(name): name for name in names}


def test_names_that_differ_only_in_dots_and_underscores_collide() -> None:
    topic_rules.check_collision("a-b", by_spelling("a.b", "a_b"))
    topic_rules.check_collision("a.b", by_spelling("a.c", "ab"))
    with pytest.raises(KafkaError) as refused:
        topic_rules.check_collision("a.b_c", by_spelling("x", "a_b.c"))
    assert refused.value.code is ErrorCode.invalid_topic_exception
    assert refused.value.message == "Topic 'a.b_c' collides with existing topic: a_b.c"
