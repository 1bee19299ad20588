"""DescribeCluster."""

from __future__ import annotations

import pytest

from ottla.api.describe_cluster import API
from ottla.api.operations import NOT_ASKED
from ottla.model.errors import ErrorCode
from tests.api.allowed import ON_CLUSTER
from tests.api.handler_client import ask
from tests.fakes.control_plane import control_plane, until


@pytest.mark.parametrize("version", API.versions)
async def test_brokers_and_controller_are_named(version: int) -> None:
    async with control_plane() as plane:
        one, two = await plane.start(1), await plane.start(2)
        await until(lambda: len(two.metadata.image.brokers) == 2)
        asked = {"include_cluster_authorized_operations": True, "include_fenced_brokers": False}
        said = await ask(two, API, asked, version)
        assert (said.error_code, said.cluster_id) == (ErrorCode.none, "the-cluster")
        assert said.controller_id == one.id
        told = [(b.broker_id, b.host, b.port) for b in said.brokers]
        assert told == [(1, "host1", 9092), (2, "host2", 9092)]
        assert said.cluster_authorized_operations == ON_CLUSTER
        asked = {
            "include_cluster_authorized_operations": False,
            "include_fenced_brokers": False,
        }
        said = await ask(two, API, asked, version)
        assert said.cluster_authorized_operations == NOT_ASKED


@pytest.mark.parametrize(
    ("endpoint", "code"),
    [(2, ErrorCode.mismatched_endpoint_type), (9, ErrorCode.unsupported_endpoint_type)],
)
async def test_only_brokers_can_be_asked_for(endpoint: int, code: ErrorCode) -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        asked = {
            "include_cluster_authorized_operations": False,
            "endpoint_type": endpoint,
            "include_fenced_brokers": False,
        }
        assert (await ask(one, API, asked)).error_code is code
