"""AlterUserScramCredentials: one change of a user in a request, as Kafka takes them."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.api import alter_user_scram_credentials as alter
from ottla.api import describe_user_scram_credentials as describe
from ottla.model.errors import ErrorCode
from tests.api.handler_client import ask
from tests.fakes.control_plane import Node, control_plane

SHA_256, SHA_512 = 1, 2


def new(name: str, mechanism: int, iterations: int = 4096) -> dict[str, Any]:
    return {
        "name": name, "mechanism": mechanism, "iterations": iterations,
        "salt": b"salt", "salted_password": b"p" * 32,
    }  # fmt: skip


def gone(name: str, mechanism: int) -> dict[str, Any]:
    return {"name": name, "mechanism": mechanism}


async def altered(
    node: Node, *upsertions: dict[str, Any], deletions: tuple[dict[str, Any], ...] = ()
) -> dict[str, ErrorCode]:
    asked = {"deletions": deletions, "upsertions": upsertions}
    reply = await ask(node, alter.API, asked)
    return {result.user: result.error_code for result in reply.results}


async def mechanisms(node: Node, user: str) -> list[int]:
    reply = await ask(node, describe.API, {"users": [{"name": user}]})
    return sorted(info.mechanism for info in reply.results[0].credential_infos)


async def test_two_changes_of_a_user_in_one_request_are_refused_of_others_none() -> None:
    async with control_plane() as plane:
        node = await plane.start(1)
        twice = await altered(node, new("a", SHA_256), new("a", SHA_512), new("b", SHA_256))
        assert twice == {"a": ErrorCode.duplicate_resource, "b": ErrorCode.none}
        assert (await mechanisms(node, "a"), await mechanisms(node, "b")) == ([], [SHA_256])
        moved = await altered(node, new("b", SHA_512), deletions=(gone("b", SHA_256),))
        assert moved == {"b": ErrorCode.duplicate_resource}
        assert await mechanisms(node, "b") == [SHA_256]


async def test_a_change_that_is_wrong_by_itself_is_refused_for_that() -> None:
    async with control_plane() as plane:
        node = await plane.start(1)
        assert await altered(node, new("a", SHA_256, 1), new("a", SHA_512)) == {
            "a": ErrorCode.unacceptable_credential
        }


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
@pytest.mark.parametrize(
    ("iterations", "code"),
    [
        (-1, ErrorCode.unacceptable_credential),
        (0, ErrorCode.unacceptable_credential),
        (4_095, ErrorCode.unacceptable_credential),
        (4_096, ErrorCode.none),
        (16_384, ErrorCode.none),
        (16_385, ErrorCode.unacceptable_credential),
        (2**31 - 1, ErrorCode.unacceptable_credential),
    ],
)
async def test_a_credential_has_at_least_4096_iterations_and_no_more_than_kafka_takes(
    mechanism: int, iterations: int, code: ErrorCode
) -> None:
    async with control_plane() as plane:
        node = await plane.start(1)
        assert await altered(node, new("a", mechanism, iterations)) == {"a": code}
        assert await mechanisms(node, "a") == ([mechanism] if code is ErrorCode.none else [])
