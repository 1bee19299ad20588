"""ApiVersions: what is offered, also to a client that speaks a version nobody has."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.api import APIS
from ottla.api.api_versions import API
from ottla.model.errors import ErrorCode
from ottla.protocol import wire
from tests.fakes.api_side import api_side

CLIENT = {"client_software_name": "apache-kafka-java", "client_software_version": "4.0.0"}
OFFERED = {a.key: (a.oldest_advertised, a.versions[-1]) for a in APIS if not a.between_brokers}


def keys(said: Any) -> dict[int, tuple[int, int]]:
    return {one.api_key: (one.min_version, one.max_version) for one in said.api_keys}


@pytest.mark.parametrize("version", API.versions)
async def test_every_version_lists_what_a_client_may_ask(version: int) -> None:
    async with api_side() as side:
        said = await side.caller.ask(API, version, **CLIENT)
        assert said.error_code is ErrorCode.none
        assert keys(said) == OFFERED
        assert keys(said)[0] == (0, 13), "librdkafka breaks unless Produce is offered from 0"


@pytest.mark.parametrize(("version", "lowest"), [(3, 1), (4, 0)])
async def test_the_newest_protocols_are_said_to_be_in_force(version: int, lowest: int) -> None:
    async with api_side() as side:
        said = await side.caller.ask(API, version, **CLIENT)
        assert {one.name: one.max_version_level for one in said.finalized_features} == {
            "group.version": 1,
            "transaction.version": 2,
        }
        assert {one.min_version for one in said.supported_features} == {lowest}


@pytest.mark.parametrize("version", [5, 99, -1])
async def test_an_unknown_version_is_answered_in_version_0_with_the_versions_there_are(
    version: int,
) -> None:
    async with api_side() as side:
        frame = bytearray(wire.encode_request(API.key, 3, 77, "caller", CLIENT))
        frame[6:8] = version.to_bytes(2, "big", signed=True)
        reply = await side.caller.send(bytes(frame))
        said = wire.decode_reply(API.key, 0, memoryview(reply)[4:])
        assert said.error_code is ErrorCode.unsupported_version
        assert keys(said) == {API.key: OFFERED[API.key]}
        assert int.from_bytes(reply[4:8], "big") == 77
        assert side.caller.ended is None


@pytest.mark.spec("NET-19")
async def test_the_clients_software_is_remembered() -> None:
    async with api_side() as side:
        await side.caller.ask(API, 3, **CLIENT)
        peer = side.caller.peer
        assert (peer.software_name, peer.software_version) == ("apache-kafka-java", "4.0.0")


@pytest.mark.parametrize("name", ["", "a\nb", "-a", "a-", "a b", "ä", "a_b"])
@pytest.mark.parametrize("field", sorted(CLIENT))
async def test_software_with_an_odd_name_is_refused_and_not_remembered(
    name: str, field: str
) -> None:
    async with api_side() as side:
        said = await side.caller.ask(API, 3, **{**CLIENT, field: name})
        assert said.error_code is ErrorCode.invalid_request
        assert said.api_keys == ()
        assert side.caller.peer.software_name == "unknown"
