"""DescribeCluster (60): the cluster's id, its brokers and its controller."""

from __future__ import annotations

from typing import Final

from ottla.api import operations
from ottla.api.api import Api, Context, Fields, Request
from ottla.api.operations import NOT_ASKED
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_BROKER

KEY: Final = 60
BROKERS: Final = 1
CONTROLLERS: Final = 2


async def describe_cluster(request: Request, ctx: Context) -> Fields:
    if request.endpoint_type == CONTROLLERS:
        raise KafkaError(
            ErrorCode.mismatched_endpoint_type,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
            "CONTROLLER",
        )
    if request.endpoint_type != BROKERS:
        raise KafkaError(
            ErrorCode.unsupported_endpoint_type,
            f"Unsupported endpoint type {request.endpoint_type}",
        )
    image = ctx.services.metadata.image
    with_operations = request.include_cluster_authorized_operations
    return {
        "throttle_time": 0,
        "error_code": ErrorCode.none,
        "error_message": None,
        "endpoint_type": BROKERS,
        "cluster_id": ctx.services.broker.cluster_id,
        "controller_id": NO_BROKER if image.controller_id is None else image.controller_id,
        "brokers": [
            {
                "broker_id": node.id,
                "host": node.host,
                "port": node.port,
                "rack": node.rack,
                "is_fenced": False,
            }
            for node in image.nodes(ctx.peer.listener)
        ],
        "cluster_authorized_operations": operations.on_cluster(ctx)
        if with_operations
        else NOT_ASKED,
    }


def refuse(_: Request, code: ErrorCode, message: str | None) -> Fields:
    return {
        "throttle_time": 0,
        "error_code": code,
        "error_message": message,
        "endpoint_type": BROKERS,
        "cluster_id": "",
        "controller_id": NO_BROKER,
        "brokers": [],
        "cluster_authorized_operations": NOT_ASKED,
    }


API = Api(KEY, "DescribeCluster", range(0, 3), describe_cluster, refuse)
