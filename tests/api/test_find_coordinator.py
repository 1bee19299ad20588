"""FindCoordinator."""

from __future__ import annotations

import pytest

from ottla.api.find_coordinator import API
from ottla.model.errors import ErrorCode
from ottla.testing import Broker
from tests.raw_requests import METADATA, Line

NEWEST = API.versions[-1]


@pytest.mark.spec("GRP-02", "GRP-07", "TXN-21", "TXN-28")
@pytest.mark.parametrize("version", API.versions)
@pytest.mark.parametrize("kind", [0, 1])
def test_the_coordinator_is_found_in_every_version(
    ottla_broker: Broker, version: int, kind: int
) -> None:
    if version == 0 and kind == 1:
        return  # it knows groups only
    with Line(ottla_broker.bootstrap_servers) as line:
        reply = line.ask(API.key, version, key="a", key_type=kind, coordinator_keys=["a", "b"])
    found = [reply] if version < 4 else reply.coordinators
    assert [one.error_code for one in found] == [ErrorCode.none] * len(found)
    assert {f"{one.host}:{one.port}" for one in found} == {ottla_broker.bootstrap_servers}
    if version >= 1:
        assert {one.error_message for one in found} == {"NONE" if version < 4 else ""}
    if version >= 4:
        assert [one.key for one in found] == ["a", "b"]


@pytest.mark.spec("GRP-07", "GRP-80")
def test_the_first_question_makes_the_topic() -> None:
    settings = {"offsets.topic.num.partitions": "7"}
    with Broker(settings) as broker, Line(broker.bootstrap_servers) as line:
        assert line.ask(API.key, 3, key="g", key_type=0).error_code is ErrorCode.none
        [topic] = line.ask(METADATA, 1, topics=None).topics
        assert (topic.name, topic.is_internal) == ("__consumer_offsets", True)
        assert len(topic.partitions) == 7


@pytest.mark.parametrize("version", [3, NEWEST])
def test_a_kind_of_coordinator_that_is_not_offered_is_refused(
    ottla_broker: Broker, version: int
) -> None:
    with Line(ottla_broker.bootstrap_servers) as line:
        reply = line.ask(API.key, version, key="a", key_type=2, coordinator_keys=["a"])
    found = reply if version < 4 else reply.coordinators[0]
    assert (found.error_code, found.node_id) == (ErrorCode.invalid_request, -1)
