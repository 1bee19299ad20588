"""Ottla answers a controller and brokers as Apache Kafka 3.9 does, the last with ZooKeeper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from ottla.api import APIS
from tests.interop.answers import of_brokers
from tests.interop.answers.differences import MEANT_39, meant
from tests.interop.answers.playing import SCENARIOS_39, Answers, playing_39
from tests.interop.answers.running import is_text
from tests.interop.answers.side import KEYS
from tests.interop.answers.summary import (
    DOCUMENT,
    HEAD_39,
    counted,
    document_39,
    share_identical,
)
from tools import kafka_cache

pytestmark = pytest.mark.timeout(300)
ENOUGH = 0.95


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    try:
        with playing_39(tmp_path_factory.mktemp("answers-39")) as running:
            yield running
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", SCENARIOS_39)
def test_no_reply_differs_but_where_a_reason_is_listed(answers: Answers, name: str) -> None:
    unlisted = [
        f"{exchange.api} v{exchange.version} {found}"
        for exchange in answers.of(SCENARIOS_39[name])
        for found in exchange.different
        if not is_text(found) and meant(name, exchange.api, found) is None
    ]
    assert not unlisted, "\n".join(["not in differences.py:", *unlisted])


def test_every_listed_difference_still_exists(answers: Answers) -> None:
    seen = {
        meant(exchange.scenario, exchange.api, found)
        for exchange in answers.everything()
        for found in exchange.different
    }
    assert [one for one in MEANT_39 if one not in seen] == []


def test_nearly_all_exchanges_are_identical(answers: Answers) -> None:
    counts = counted(answers.everything())
    assert share_identical(counts) >= ENOUGH, counts
    assert sum(counts.values(), Counter[str]()).total() > 100


def test_every_version_that_we_offer_is_asked(answers: Answers) -> None:
    asked = {(KEYS[one.api], one.version) for one in answers.everything() if not one.setup}
    offered = {
        (api.key, version)
        for api in APIS
        for version in api.versions
        if api.name in of_brokers.APIS
    }
    assert asked == offered


def test_the_document_says_what_was_seen(answers: Answers) -> None:
    _, head, rest = DOCUMENT.read_text().partition(HEAD_39)
    hint = "write it anew with python -m tests.interop.answers.summary"
    assert head + rest == document_39(answers.everything(), kafka_cache.KAFKA_3), hint
