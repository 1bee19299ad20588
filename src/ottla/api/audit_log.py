"""A line in the audit log for each administrative request: who changed what, from where.

Owns: which requests are administrative, and what of them is logged: names of resources and of
settings. Never logs a value: it may be a password. Denials are logged by the authorizer, logins by
`login`, changes of credentials and tokens by their own APIs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.model.errors import ErrorCode
from ottla.net.error_log import escaped

audit = logging.getLogger("ottla.security.audit")

NAMES_MAX: Final = 20
"""Further names of one request are left out."""
ITEMS_MAX: Final = 200
"""How many items of a reply are looked at: a large one must not keep the event loop."""

FIRST_WITH_TOPIC_IDS: Final = 6
"""Version of DeleteTopics."""
VALIDATING: Final = frozenset({19, 33, 37, 44, 49})
"""Requests with the field `validate_only`. Of others it is not asked: to look for a field that a
message lacks, all its versions are imported."""

_KINDS: Final = {2: "topic", 4: "broker", 8: "broker_logger", 16: "client_metrics", 32: "group"}


def log_change(api: Api, request: Request, ctx: Context, reply: Fields) -> None:
    """After the request was handled; `failed` counts what was refused of its first items."""
    if api.key in VALIDATING and request.validate_only:
        return
    names = list(islice(ADMINISTRATIVE[api.key](request), NAMES_MAX + 1))
    more = " and more" if len(names) > NAMES_MAX else ""
    audit.info(
        "changed: principal=%s host=%s api=%s resources=%s%s failed=%d",
        ctx.peer.principal, ctx.peer.address, api.name,
        [escaped(name) for name in names[:NAMES_MAX]], more, _failures(reply),
    )  # fmt: skip


def _failures(reply: Fields) -> int:
    """Among the first items of a reply; some replies have them in a list of lists."""
    return sum(
        item.get("error_code", ErrorCode.none) != ErrorCode.none
        for item in islice(_items(reply), ITEMS_MAX)
    )


def _items(reply: Fields) -> Iterator[Fields]:
    for value in reply.values():
        for item in value if isinstance(value, list | tuple) else ():
            if isinstance(item, Mapping):
                yield item
                yield from _items(item)


def _item_names(items: Iterable[Request] | None) -> Iterator[str]:
    for item in items or ():
        yield str(getattr(item, "name", None) or getattr(item, "topic_id", ""))


def _deleted_topics(request: Request) -> Iterator[str]:
    by_name: bool = request.__version__ < FIRST_WITH_TOPIC_IDS
    return iter(request.topic_names) if by_name else _item_names(request.topics)


def _configs(request: Request) -> Iterator[str]:
    for resource in request.resources:
        keys = ",".join(config.name for config in resource.configs[:NAMES_MAX])
        kind = _KINDS.get(resource.resource_type, str(resource.resource_type))
        yield f"{kind} {resource.resource_name}({keys})"


def _created_acls(request: Request) -> Iterator[str]:
    return (f"{each.principal} on {each.resource_name}" for each in request.creations)


def _deleted_acls(request: Request) -> Iterator[str]:
    for each in request.filters:
        yield f"{each.principal_filter or '*'} on {each.resource_name_filter or '*'}"


def _quotas(request: Request) -> Iterator[str]:
    for entry in request.entries:
        entity = ",".join(
            f"{part.entity_type}={part.entity_name}" for part in entry.entity[:NAMES_MAX]
        )
        yield f"{entity}({','.join(change.key for change in entry.ops[:NAMES_MAX])})"


def _moved_topics(request: Request) -> Iterator[str]:
    return (topic.name for each in request.dirs for topic in each.topics)


ADMINISTRATIVE: Final[Mapping[int, Callable[[Request], Iterator[str]]]] = {
    19: lambda request: _item_names(request.topics),  # CreateTopics
    20: _deleted_topics,
    21: lambda request: _item_names(request.topics),  # DeleteRecords
    30: _created_acls,
    31: _deleted_acls,
    33: _configs,  # AlterConfigs
    34: _moved_topics,  # AlterReplicaLogDirs
    37: lambda request: _item_names(request.topics),  # CreatePartitions
    42: lambda request: iter(request.groups_names),  # DeleteGroups
    43: lambda request: (each.topic for each in request.topic_partitions or ()),  # ElectLeaders
    44: _configs,  # IncrementalAlterConfigs
    45: lambda request: _item_names(request.topics),  # AlterPartitionReassignments
    47: lambda request: iter((request.group_id,)),  # OffsetDelete
    49: _quotas,
}
"""By the key of the API: the names of what a request changes."""
