"""No rules when a test begins, and none when it ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ottla
from ottla import AclFilter


@pytest.fixture(autouse=True)
def no_rules(admin: ottla.Admin) -> Iterator[None]:
    admin.delete_acls([AclFilter()]).all()
    yield
    admin.delete_acls([AclFilter()]).all()
