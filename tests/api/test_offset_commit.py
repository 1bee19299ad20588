"""OffsetCommit."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.api.offset_commit import API
from ottla.model.errors import ErrorCode
from ottla.testing import Broker
from tests.api.group_member import commit, new_group, open_line, stable, topic_id


@pytest.mark.spec("GRP-60", "GRP-61", "GRP-64")
@pytest.mark.parametrize("version", API.versions)
def test_offsets_are_committed_in_every_version(ottla_broker: Broker, version: int) -> None:
    group = new_group()
    with open_line(ottla_broker) as line:
        by_id: dict[str, Any] = {"topic_id": topic_id(line)} if version >= 10 else {}
        assert commit(line, group, version=version, **by_id) is ErrorCode.none
        too_long = commit(line, group, version=version, metadata="x" * 5_000, **by_id)
        assert too_long is ErrorCode.offset_metadata_too_large
        assert commit(line, "", version=version, **by_id) is ErrorCode.invalid_group_id
        nowhere = commit(line, group, version=version, partition=9, **by_id)
        assert nowhere is ErrorCode.unknown_topic_or_partition


@pytest.mark.spec("GRP-47", "GRP-60")
@pytest.mark.parametrize("version", API.versions)
def test_members_commit_for_their_own_generation_only(ottla_broker: Broker, version: int) -> None:
    group = new_group()
    with open_line(ottla_broker) as line:
        by_id: dict[str, Any] = {"topic_id": topic_id(line)} if version >= 10 else {}
        member = stable(line, group).member_id

        def code(generation: int, named: str = group) -> ErrorCode:
            return commit(
                line,
                named,
                version=version,
                member_id=member,
                generation_id_or_member_epoch=generation,
                **by_id,
            )

        assert code(1) is ErrorCode.none
        assert code(0) is ErrorCode.illegal_generation
        unknown = ErrorCode.group_id_not_found if version >= 9 else ErrorCode.illegal_generation
        assert code(1, new_group()) is unknown


def test_a_topic_id_that_is_not_known_is_refused(ottla_broker: Broker) -> None:
    with open_line(ottla_broker) as line:
        code = commit(line, new_group(), version=10, topic_id=UUID(int=99))
    assert code is ErrorCode.unknown_topic_id
