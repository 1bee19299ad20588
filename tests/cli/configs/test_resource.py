from __future__ import annotations

import pytest

from ottla.cli.configs.resource import Kind, resource
from ottla.client.admin import Resource
from ottla.model.errors import UserError


@pytest.mark.parametrize(
    ("kind", "name", "meant"),
    [
        (Kind.TOPIC, "t", Resource.topic("t")),
        (Kind.BROKER, "3", Resource.broker(3)),
        (Kind.BROKERS, None, Resource.broker(None)),
        (Kind.GROUP, "g", Resource.group("g")),
        (Kind.LOGGERS, "3", Resource.loggers(3)),
    ],
)
def test_a_kind_and_a_name_mean_a_resource(kind: Kind, name: str | None, meant: Resource) -> None:
    assert resource(kind, name) == meant


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        (Kind.TOPIC, None, "is required for topic"),
        (Kind.BROKER, "one", "expected the id of a broker"),
        (Kind.BROKERS, "1", "broker --name ID"),
    ],
)
def test_a_name_that_does_not_fit_is_said(kind: Kind, name: str | None, said: str) -> None:
    with pytest.raises(UserError, match=f"--name.*{said}"):
        resource(kind, name)
