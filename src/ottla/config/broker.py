"""Every setting of a broker, and the rules between them.

The settings of each concern are in `network`, `logs`, `replication`, `zookeeper`, `coordination`
and `security`; this module has those of the broker as a whole. Defaults are Kafka 4.3's but for
`broker.id`, `log.dir`, `group.coordinator.rebalance.protocols`, `socket.receive.buffer.bytes`,
`transaction.two.phase.commit.enable` and settings marked "Ours"; `tests/interop` compares them.
"""

from collections.abc import Mapping
from typing import Annotated, Self

from ottla.config.coordination import CoordinationSettings
from ottla.config.listener_settings import OfListeners
from ottla.config.listeners import Listeners
from ottla.config.logs import HOUR_MS, LogSettings
from ottla.config.network import NetworkSettings
from ottla.config.replication import ReplicationSettings
from ottla.config.security import SecuritySettings
from ottla.config.settings import AtLeast, Doc, TypedValue
from ottla.config.zookeeper import ZooKeeperSettings
from ottla.model.errors import UserError


class BrokerConfig(
    NetworkSettings,
    LogSettings,
    ReplicationSettings,
    ZooKeeperSettings,
    CoordinationSettings,
    SecuritySettings,
):
    broker_id: Annotated[int, AtLeast(-1), Doc("The id of this broker; -1 generates one.")] = 0
    broker_id_generation_enable: Annotated[bool, Doc("Allow generated broker ids.")] = True
    reserved_broker_max_id: Annotated[
        int, AtLeast(0), Doc("Largest configured id; generated ids are above it.")
    ] = 1_000
    broker_rack: Annotated[
        str | None, Doc("Rack of this broker; replicas are spread over racks.")
    ] = None
    auto_create_topics_enable: Annotated[bool, Doc("Create a topic when it is first used.")] = True
    delete_topic_enable: Annotated[bool, Doc("Allow topics to be deleted.")] = True
    num_partitions: Annotated[
        int, AtLeast(1), Doc("Partitions of a topic created without saying how many.")
    ] = 1

    of_listeners: OfListeners
    """Settings of single listeners."""

    def __init__(self, *, of_listeners: OfListeners | None = None, **values: TypedValue) -> None:
        super().__init__(**values)
        self.__dict__["of_listeners"] = of_listeners or OfListeners.of({})

    @classmethod
    def parse(cls, texts: Mapping[str, str], *, source: str = "") -> Self:
        config = cls(of_listeners=OfListeners.of(texts), **cls.read(texts, source=source))
        config.check()
        return config

    def check(self) -> None:
        """The rules between settings; each error names the setting to change."""
        rules = (
            self._id_rules(), self._log_rules(), self._wait_rules(), self._access_rules(),
            self._zookeeper_rules(),
        )  # fmt: skip
        for error in rules:
            if error:
                raise UserError(error)
        Listeners.of(self)

    @property
    def data_dirs(self) -> tuple[str, ...]:
        return self.log_dirs or self.log_dir

    @property
    def retention_ms(self) -> int:
        """The strongest of the three retention settings."""
        if self.log_retention_ms is not None:
            return self.log_retention_ms
        if self.log_retention_minutes is not None:
            return -1 if self.log_retention_minutes < 0 else self.log_retention_minutes * 60_000
        return -1 if self.log_retention_hours < 0 else self.log_retention_hours * HOUR_MS

    @property
    def roll_ms(self) -> int:
        return self.log_roll_hours * HOUR_MS if self.log_roll_ms is None else self.log_roll_ms

    @property
    def roll_jitter_ms(self) -> int:
        if self.log_roll_jitter_ms is None:
            return self.log_roll_jitter_hours * HOUR_MS
        return self.log_roll_jitter_ms

    @property
    def flush_ms(self) -> int:
        if self.log_flush_interval_ms is None:
            return self.log_flush_scheduler_interval_ms
        return self.log_flush_interval_ms

    @property
    def connections_per_ip_overrides(self) -> dict[str, int]:
        return _limits(self.max_connections_per_ip_overrides)

    def _id_rules(self) -> str | None:
        if self.broker_id > self.reserved_broker_max_id:
            return (
                f"broker.id={self.broker_id}: expected at most "
                f"reserved.broker.max.id, {self.reserved_broker_max_id}"
            )
        if self.broker_id < 0 and not self.broker_id_generation_enable:
            return "broker.id=-1: expected at least 0, since broker.id.generation.enable is false"
        return None

    def _log_rules(self) -> str | None:
        directories = self.data_dirs
        if not directories or not all(directories):
            return "log.dirs: expected a comma-separated list of directories without empty names"
        if len(set(directories)) < len(directories):
            return f"log.dirs={','.join(directories)}: a directory is listed more than once"
        threads = self.log_cleaner_threads or 1
        if self.log_cleaner_dedupe_buffer_size // threads <= 1024 * 1024:
            return (
                f"log.cleaner.dedupe.buffer.size={self.log_cleaner_dedupe_buffer_size}: "
                "expected more than 1048576 for each of log.cleaner.threads"
            )
        return None

    def _wait_rules(self) -> str | None:
        wait = self.replica_fetch_wait_max_ms
        if wait > self.replica_socket_timeout_ms:
            return (
                f"replica.fetch.wait.max.ms={wait}: expected at most replica.socket.timeout.ms, "
                f"{self.replica_socket_timeout_ms}"
            )
        if wait > self.replica_lag_time_max_ms:
            return (
                f"replica.fetch.wait.max.ms={wait}: expected at most replica.lag.time.max.ms, "
                f"{self.replica_lag_time_max_ms}"
            )
        if 0 < self.queued_max_request_bytes < self.socket_request_max_bytes:
            return "queued.max.request.bytes: expected at least socket.request.max.bytes"
        overrides = _limits(self.max_connections_per_ip_overrides)
        if self.max_connections_per_ip == 0 and not overrides:
            return "max.connections.per.ip=0: needs max.connections.per.ip.overrides"
        idle = self.connections_max_idle_ms
        if 0 < idle <= self.connection_failed_authentication_delay_ms:
            return (
                "connection.failed.authentication.delay.ms: expected less than "
                f"connections.max.idle.ms, {idle}"
            )
        low, high = self.group_min_session_timeout_ms, self.group_max_session_timeout_ms
        if low > high:
            return (
                f"group.min.session.timeout.ms={low}: expected at most "
                f"group.max.session.timeout.ms, {high}"
            )
        return self._consumer_rules()

    def _consumer_rules(self) -> str | None:
        for quantity in ("session_timeout", "heartbeat_interval"):
            value, low, high = (
                getattr(self, f"group_consumer_{part}{quantity}_ms")
                for part in ("", "min_", "max_")
            )
            if not low <= value <= high:
                name = f"group.consumer.{quantity.replace('_', '.')}.ms"
                return f"{name}={value}: expected between its minimum {low} and its maximum {high}"
        beat_ms, session_ms = (
            self.group_consumer_heartbeat_interval_ms,
            self.group_consumer_session_timeout_ms,
        )
        if beat_ms >= session_ms:
            return (
                f"group.consumer.heartbeat.interval.ms={beat_ms}: expected less than "
                f"group.consumer.session.timeout.ms, {session_ms}"
            )
        if not self.group_consumer_assignors:
            return "group.consumer.assignors: expected at least one of uniform, range"
        return None


def _limits(text: str) -> dict[str, int]:
    """host:count, comma-separated, as a mapping."""
    limits: dict[str, int] = {}
    for item in filter(None, (item.strip() for item in text.split(","))):
        host, _, count = item.rpartition(":")
        if not host or not (count.isascii() and count.isdigit()):
            raise UserError(f"max.connections.per.ip.overrides={text!r}: expected host:count")
        limits[host] = int(count)
    return limits
