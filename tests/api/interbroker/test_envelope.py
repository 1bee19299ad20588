"""Envelope: requests of clients that another broker forwards to the controller."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.api import create_topics, metadata
from ottla.api.interbroker.envelope import API
from ottla.model.errors import ErrorCode as E
from ottla.protocol import principals, wire
from tests.api.handler_client import ask
from tests.fakes.control_plane import control_plane, settle

CREATE = {
    "topics": [
        {
            "name": "t",
            "num_partitions": 2,
            "replication_factor": 1,
            "assignments": [],
            "configs": [],
        }
    ],
    "timeout": 5_000,
    "validate_only": False,
}


ALL_TOPICS = {"topics": None, "allow_auto_topic_creation": False}


def wrapped(frame: bytes, **more: Any) -> dict[str, Any]:
    return {
        "request_data": frame[4:],
        "request_principal": principals.encode("User:alice"),
        "client_host_address": b"\x0a\0\0\1",
        **more,
    }


def create_frame() -> bytes:
    return wire.encode_request(create_topics.API.key, 7, 77, "client", CREATE)


async def test_the_controller_answers_as_it_would_answer_the_client_itself() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await plane.start(2)
        await settle()
        said = await ask(one, API, wrapped(create_frame()))
        assert said.error_code is E.none
        data = memoryview(said.response_data)
        assert int.from_bytes(data[:4], "big") == 77, "the client's own correlation id"
        [topic] = wire.decode_reply(create_topics.API.key, 7, data).topics
        assert (topic.name, topic.error_code, topic.num_partitions) == ("t", E.none, 2)


async def test_a_broker_that_is_not_the_controller_refuses_and_never_forwards_again() -> None:
    async with control_plane() as plane:
        await plane.start(1)
        two = await plane.start(2)
        await settle()
        said = await ask(two, API, wrapped(create_frame()))
        assert (said.error_code, said.response_data) == (E.not_controller, None)


@pytest.mark.parametrize(
    "asked",
    [
        wrapped(wire.encode_request(metadata.API.key, 4, 1, "client", ALL_TOPICS)),
        wrapped(wire.encode_request(API.key, 0, 1, "client", wrapped(create_frame()))),
        wrapped(b"\0\0\0\0\0"),
        wrapped(create_frame()[:-3]),
        wrapped(create_frame(), request_principal=b"\0\1"),
        wrapped(create_frame(), request_principal=b"\0\0\xff\xff\xff"),
        wrapped(create_frame(), client_host_address=b"\x0a"),
    ],
)
async def test_only_well_formed_requests_that_need_the_controller_are_taken(asked: Any) -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        assert (await ask(one, API, asked)).error_code is E.invalid_request


def test_a_principal_is_written_as_kafkas_default_builder_writes_it() -> None:
    assert principals.encode("User:alice") == b"\0\0\x05User\x06alice\0\0"
    assert principals.decode(principals.encode("User:CN=a:b")) == "User:CN=a:b"
