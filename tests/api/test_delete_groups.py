"""DeleteGroups."""

from __future__ import annotations

import pytest

from ottla.api.delete_groups import API
from ottla.model.errors import ErrorCode
from ottla.testing import Broker
from tests.api.group_member import commit, new_group, open_line, stable


@pytest.mark.parametrize("version", API.versions)
def test_empty_groups_are_deleted_in_every_version(ottla_broker: Broker, version: int) -> None:
    busy, empty, nobody = (new_group() for _ in range(3))
    with open_line(ottla_broker) as line:
        stable(line, busy)
        commit(line, empty)
        reply = line.ask(API.key, version, groups_names=[busy, empty, nobody, empty])
    assert [(one.group_id, one.error_code) for one in reply.results] == [
        (busy, ErrorCode.non_empty_group),
        (empty, ErrorCode.none),
        (nobody, ErrorCode.group_id_not_found),
    ]
