"""A member of a consumer group that says exactly what a test wants it to say."""

from __future__ import annotations

from typing import Any

from ottla.api import consumer_group_heartbeat
from tests.api.group_member import TOPIC
from tests.raw_requests import Line


def beat(line: Line, group: str, epoch: int = 0, version: int = 1, **more: Any) -> Any:
    """A full heartbeat by default: a join."""
    fields = {
        "group_id": group,
        "member_id": "me",
        "member_epoch": epoch,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout": 60_000,
        "subscribed_topic_names": [TOPIC],
        "subscribed_topic_regex": None,
        "server_assignor": None,
        "topic_partitions": [],
    }
    return line.ask(consumer_group_heartbeat.KEY, version, **{**fields, **more})
