"""ListPartitionReassignments (46): the moves of replicas that are under way."""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_cluster
from ottla.api.requested_partitions import numbers_by_topic
from ottla.delay.slices import in_slices
from ottla.model.errors import ErrorCode
from ottla.security.acl import Operation

KEY: Final = 46


async def list_partition_reassignments(request: Request, ctx: Context) -> Fields:
    requested = None
    if request.topics is not None:
        requested = await numbers_by_topic(
            (topic.name, topic.partition_indexes) for topic in request.topics
        )
    topics: dict[str, list[Fields]] = {}
    async for tp, partition in in_slices(ctx.services.controller.reassignments().items()):
        if requested is not None and tp.partition not in requested.get(tp.topic, ()):
            continue
        topics.setdefault(tp.topic, []).append(
            {
                "partition_index": tp.partition,
                "replicas": partition.replicas,
                "adding_replicas": partition.adding,
                "removing_replicas": partition.removing,
            }
        )
    return {
        **_head(ErrorCode.none, None),
        "topics": [{"name": name, "partitions": listed} for name, listed in topics.items()],
    }


def _head(code: ErrorCode, message: str | None) -> Fields:
    return {"throttle_time": 0, "error_code": code, "error_message": message}


def refuse(_: Request, code: ErrorCode, message: str | None) -> Fields:
    return {**_head(code, message), "topics": []}


API = Api(
    KEY,
    "ListPartitionReassignments",
    range(0, 1),
    list_partition_reassignments,
    refuse,
    needs_controller=True,
    needs=on_cluster(Operation.DESCRIBE),
)
