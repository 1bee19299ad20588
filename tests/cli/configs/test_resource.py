from __future__ import annotations

import pytest

from ottla.cli.configs.resource import ConfigKind, resource
from ottla.client.admin import Resource
from ottla.model.errors import UserError


@pytest.mark.parametrize(
    ("kind", "name", "meant"),
    [
        (ConfigKind.TOPIC, "t", Resource.topic("t")),
        (ConfigKind.BROKER, "3", Resource.broker(3)),
        (ConfigKind.BROKERS, None, Resource.broker(None)),
        (ConfigKind.GROUP, "g", Resource.group("g")),
        (ConfigKind.LOGGERS, "3", Resource.loggers(3)),
    ],
)
def test_a_kind_and_a_name_mean_a_resource(
    kind: ConfigKind, name: str | None, meant: Resource
) -> None:
    assert resource(kind, name) == meant


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        (ConfigKind.TOPIC, None, "is required for topic"),
        (ConfigKind.BROKER, "one", "expected the id of a broker"),
        (ConfigKind.BROKERS, "1", "broker --name ID"),
    ],
)
def test_a_name_that_does_not_fit_is_said(kind: ConfigKind, name: str | None, said: str) -> None:
    with pytest.raises(UserError, match=f"--name.*{said}"):
        resource(kind, name)
