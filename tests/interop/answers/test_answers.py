"""Ottla answers as Apache Kafka does, field by field, but for what is listed with a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from ottla.api import APIS
from tests.interop.answers.differences import MEANT, meant
from tests.interop.answers.playing import SCENARIOS, Answers, playing
from tests.interop.answers.running import is_text
from tests.interop.answers.side import KEYS
from tests.interop.answers.summary import (
    DOCUMENT,
    HEAD_39,
    counted,
    document,
    kind_of,
    share_identical,
)
from tools import kafka_cache

ENOUGH = 0.95


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    try:
        with playing(tmp_path_factory.mktemp("answers")) as running:
            yield running
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_reply_differs_but_where_a_reason_is_listed(answers: Answers, name: str) -> None:
    unlisted = [
        f"{exchange.api} v{exchange.version} {found}"
        for exchange in answers.of(SCENARIOS[name])
        for found in exchange.different
        if not is_text(found) and meant(name, exchange.api, found) is None
    ]
    assert not unlisted, "\n".join(["not in differences.py:", *unlisted])


def test_every_listed_difference_still_exists(answers: Answers) -> None:
    seen = {
        meant(exchange.scenario, exchange.api, found)
        for exchange in answers.everything()
        for found in exchange.different
        if not is_text(found)
    }
    assert [one for one in MEANT if one not in seen] == []


def test_nearly_all_exchanges_are_identical(answers: Answers) -> None:
    counts = counted(answers.everything())
    assert share_identical(counts) >= ENOUGH, counts
    assert sum(counts.values(), Counter[str]()).total() > 1_000


def test_every_api_is_asked_in_every_version_that_both_offer(answers: Answers) -> None:
    asked = {(KEYS.get(one.api, -1), one.version) for one in answers.everything()}
    unasked = [
        (api.name, version)
        for api in APIS
        for version in api.versions
        if not api.between_brokers and (api.key, version) not in asked
    ]
    assert unasked == [("InitProducerId", 6)]  # Apache Kafka hides it: two-phase commit is new


def test_the_document_says_what_was_seen(answers: Answers) -> None:
    exchanges = answers.everything()
    assert {kind_of(one) for one in exchanges} <= {"identical", "other words", "listed"}
    wanted = document(exchanges, kafka_cache.KAFKA)
    hint = "write it anew with python -m tests.interop.answers.summary"
    assert DOCUMENT.read_text().partition(HEAD_39)[0] == wanted, hint
