"""The synchronous admin: `with ottla.Admin(bootstrap_servers=...) as admin`.

Owns: the face; each call runs the asynchronous one on a thread of its own and waits for it.
Never: does a call's work.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from ottla.client.admin import aio
from ottla.client.admin.session import Session
from ottla.client.thread import LoopThread

P = ParamSpec("P")
R = TypeVar("R")


def _waits(
    call: Callable[Concatenate[Session, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Admin, P], R]:
    """The same call, waited for."""

    @wraps(call)
    def waiting(self: Admin, /, *arguments: P.args, **options: P.kwargs) -> R:
        return self.wait_for(lambda admin: call(admin, *arguments, **options))

    return waiting


class Admin:
    """Looks at a cluster and changes it.

    Options are Kafka's admin settings with underscores (`bootstrap_servers`,
    `request_timeout_ms`, `default_api_timeout_ms`), or under Kafka's own names in `config`.
    """

    def __init__(self, *, config: Mapping[str, Any] | None = None, **options: Any) -> None:
        self._admin = aio.Admin(config=config, **options)
        self._thread = LoopThread("ottla-admin")
        self._started = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up; a second time does nothing."""
        if self._started:
            self._started = False
            self._thread.call_soon(self._admin.close)
            self._thread.stop()

    def wait_for(self, work: Callable[[aio.Admin], Coroutine[Any, Any, R]]) -> R:
        """Do something of several calls on the client's own thread, and wait for it."""
        if not self._started:
            self._thread.start()
            self._started = True
        return self._thread.run(work(self._admin))

    create_topics = _waits(aio.Admin.create_topics)
    create_topic = _waits(aio.Admin.create_topic)
    delete_topics = _waits(aio.Admin.delete_topics)
    delete_topic = _waits(aio.Admin.delete_topic)
    create_partitions = _waits(aio.Admin.create_partitions)
    list_topics = _waits(aio.Admin.list_topics)
    describe_topics = _waits(aio.Admin.describe_topics)
    describe_topic = _waits(aio.Admin.describe_topic)

    describe_configs = _waits(aio.Admin.describe_configs)
    alter_configs = _waits(aio.Admin.alter_configs)
    incremental_alter_configs = _waits(aio.Admin.incremental_alter_configs)
    list_config_resources = _waits(aio.Admin.list_config_resources)

    list_offsets = _waits(aio.Admin.list_offsets)
    delete_records = _waits(aio.Admin.delete_records)

    list_groups = _waits(aio.Admin.list_groups)
    describe_groups = _waits(aio.Admin.describe_groups)
    describe_group = _waits(aio.Admin.describe_group)
    delete_groups = _waits(aio.Admin.delete_groups)
    remove_group_members = _waits(aio.Admin.remove_group_members)
    list_group_offsets = _waits(aio.Admin.list_group_offsets)
    alter_group_offsets = _waits(aio.Admin.alter_group_offsets)
    delete_group_offsets = _waits(aio.Admin.delete_group_offsets)

    list_transactions = _waits(aio.Admin.list_transactions)
    describe_transactions = _waits(aio.Admin.describe_transactions)
    describe_producers = _waits(aio.Admin.describe_producers)
    abort_transaction = _waits(aio.Admin.abort_transaction)
    fence_producers = _waits(aio.Admin.fence_producers)

    elect_leaders = _waits(aio.Admin.elect_leaders)
    alter_partition_reassignments = _waits(aio.Admin.alter_partition_reassignments)
    list_partition_reassignments = _waits(aio.Admin.list_partition_reassignments)

    describe_log_dirs = _waits(aio.Admin.describe_log_dirs)
    describe_replica_log_dirs = _waits(aio.Admin.describe_replica_log_dirs)
    alter_replica_log_dirs = _waits(aio.Admin.alter_replica_log_dirs)

    create_acls = _waits(aio.Admin.create_acls)
    describe_acls = _waits(aio.Admin.describe_acls)
    delete_acls = _waits(aio.Admin.delete_acls)

    describe_cluster = _waits(aio.Admin.describe_cluster)
    describe_features = _waits(aio.Admin.describe_features)
    describe_api_versions = _waits(aio.Admin.describe_api_versions)
