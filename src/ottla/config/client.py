"""Settings of clients, under Kafka's own names.

Owns: the settings of producers, consumers and admin clients, their defaults, and the rules between
them. Never connects: a mistake is a `UserError` that names the setting before a connection is
opened.

A Python caller writes `Producer(linger_ms=5)` or `Producer(config={"linger.ms": 5})`; both go
through `from_options`.
"""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, Final, NamedTuple, Self

from ottla.config.listeners import PROTOCOLS
from ottla.config.sasl import SaslClientSettings
from ottla.config.settings import (
    INT_MAX,
    AtLeast,
    Between,
    Doc,
    Long,
    Matches,
    OneOf,
    Setting,
    TypedValue,
    Value,
    Words,
)
from ottla.config.tls import TlsSettings
from ottla.model.errors import UserError

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
MAX_IDEMPOTENT_IN_FLIGHT: Final = 5
DEFAULT_PORT: Final = 9092


class Address(NamedTuple):
    """The address of a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ClientConfig(TlsSettings, SaslClientSettings):
    """Settings of every client."""

    bootstrap_servers: Annotated[
        Words,
        Matches(r"\S+", "host:port, separated by commas"),
        Doc("Brokers for the first connection, host:port; they name all the others."),
    ] = ("localhost:9092",)
    client_id: Annotated[
        str, Doc("Name of this client in the brokers' logs, metrics and quotas.")
    ] = ""
    request_timeout_ms: Annotated[int, AtLeast(1), Doc("How long to wait for a response.")] = 30_000
    retry_backoff_ms: Annotated[
        Long, AtLeast(0), Doc("Pause before a request is retried; doubles with each failure.")
    ] = 100
    retry_backoff_max_ms: Annotated[
        Long, AtLeast(0), Doc("Longest pause before a request is retried.")
    ] = 1_000
    reconnect_backoff_ms: Annotated[
        Long, AtLeast(0), Doc("Pause before reconnecting; doubles with each failure.")
    ] = 50
    reconnect_backoff_max_ms: Annotated[
        Long, AtLeast(0), Doc("Longest pause before reconnecting.")
    ] = 1_000
    socket_connection_setup_timeout_ms: Annotated[
        Long, AtLeast(1), Doc("How long to wait for a connection to a broker.")
    ] = 10_000
    connections_max_idle_ms: Annotated[
        Long, AtLeast(1, (-1,)), Doc("Close a connection unused for this long; -1 means never.")
    ] = 540_000
    metadata_max_age_ms: Annotated[
        Long, AtLeast(0), Doc("Refresh metadata after this long, even without an error.")
    ] = 300_000
    send_buffer_bytes: Annotated[
        int, AtLeast(0, (-1,)), Doc("SO_SNDBUF of connections; -1 leaves the system's.")
    ] = -1  # not Kafka's, nor is the next: docs/decisions/0013
    receive_buffer_bytes: Annotated[
        int, AtLeast(0, (-1,)), Doc("SO_RCVBUF of connections; -1 leaves the system's.")
    ] = -1
    security_protocol: Annotated[
        str, OneOf(PROTOCOLS), Doc("Security protocol of connections to brokers.")
    ] = "PLAINTEXT"

    @classmethod
    def from_options(
        cls, options: Mapping[str, object], config: Mapping[str, object] | None = None
    ) -> Self:
        """Settings from keyword arguments (underscores) and from `config` (Kafka's names)."""
        values: dict[str, TypedValue] = {}
        for attribute, value in options.items():
            setting = cls._setting(attribute.replace("_", "."), attribute, spell=_as_argument)
            values[setting.attribute] = _value(setting, value)
        for name, value in (config or {}).items():
            setting = cls._setting(name, name, spell=str)
            if setting.attribute in values:
                raise UserError(
                    f"{name} is given twice: as {setting.attribute}= and in config={{{name!r}: …}}"
                )
            values[setting.attribute] = _value(setting, value)
        settings = cls(**values)
        settings.check()
        return settings

    def check(self) -> None:
        """The rules between settings; a subclass adds its own."""
        if not self.addresses:
            raise UserError("bootstrap.servers='': expected host:port, such as localhost:9092")

    @property
    def addresses(self) -> tuple[Address, ...]:
        """`bootstrap.servers`, parsed."""
        return tuple(_address(server) for server in self.bootstrap_servers)

    def is_given(self, attribute: str) -> bool:
        """Whether it was set explicitly."""
        return attribute in self.__dict__

    @classmethod
    def _setting(cls, name: str, given_name: str, *, spell: Callable[[str], str]) -> Setting:
        setting = cls.SETTINGS.get(name)
        if setting is not None:
            return setting
        advice = "".join(
            f"; did you mean {spell(near)}?" for near in get_close_matches(name, cls.SETTINGS, n=1)
        )
        kind = cls.__name__.removesuffix("Config")
        raise UserError(f"{given_name}: {kind} has no such option{advice}")


class AdminConfig(ClientConfig):
    """Settings of an admin client."""

    default_api_timeout_ms: Annotated[
        int, AtLeast(0), Doc("How long a call may take, including retries.")
    ] = 60_000


class ProducerConfig(ClientConfig):
    """Settings of a producer."""

    acks: Annotated[
        str,
        OneOf(("all", "-1", "0", "1")),
        Doc("Replicas that must have a record before it is acknowledged: 0, 1 or all in sync."),
    ] = "all"
    batch_size: Annotated[
        int,
        AtLeast(0),
        Doc("Most bytes of a batch; it is sent when it is full or `linger.ms` old."),
    ] = 1_000_000
    linger_ms: Annotated[
        Long, AtLeast(0), Doc("How long a batch waits for more records before it is sent.")
    ] = 5
    buffer_memory: Annotated[
        Long, AtLeast(0), Doc("Most bytes of buffered records; `send` blocks beyond it.")
    ] = 33_554_432
    max_block_ms: Annotated[
        Long,
        AtLeast(0),
        Doc("How long `send` and transaction calls may block, for memory or metadata."),
    ] = 60_000
    max_request_size: Annotated[
        int, AtLeast(0), Doc("Most bytes of a request, and of a record.")
    ] = 1_048_576
    max_in_flight_requests_per_connection: Annotated[
        int, AtLeast(1), Doc("Most unanswered requests per broker.")
    ] = 5
    compression_type: Annotated[str, OneOf(CODECS), Doc("How batches are compressed.")] = "none"
    compression_gzip_level: Annotated[
        int, Between(1, 9, (-1,)), Doc("Level of gzip; -1 is its default.")
    ] = -1
    compression_lz4_level: Annotated[int, Between(1, 17), Doc("Level of lz4.")] = 9
    compression_zstd_level: Annotated[int, Between(-131_072, 22), Doc("Level of zstd.")] = 3
    retries: Annotated[
        int, AtLeast(0), Doc("How often a batch is retried, within `delivery.timeout.ms`.")
    ] = INT_MAX
    delivery_timeout_ms: Annotated[
        int, AtLeast(0), Doc("Longest time from `send` to success or failure, including retries.")
    ] = 120_000
    enable_idempotence: Annotated[
        bool, Doc("Write each batch once and in order, even if it is retried.")
    ] = True
    transactional_id: Annotated[
        str | None, Doc("Identifies this producer's transactions across restarts.")
    ] = None
    transaction_timeout_ms: Annotated[
        int, AtLeast(0), Doc("How long a transaction may be open before the broker aborts it.")
    ] = 60_000
    transaction_two_phase_commit_enable: Annotated[
        bool, Doc("Allow prepared transactions; brokers never time them out.")
    ] = False
    partitioner_ignore_keys: Annotated[
        bool, Doc("Choose partitions as if records had no keys.")
    ] = False
    partitioner_adaptive_partitioning_enable: Annotated[
        bool, Doc("Send fewer records without a key to partitions with long queues.")
    ] = True
    metadata_max_idle_ms: Annotated[
        Long, AtLeast(5_000), Doc("Drop the metadata of a topic that was not used for this long.")
    ] = 300_000

    def check(self) -> None:
        super().check()
        shortest_ms = min(INT_MAX, self.linger_ms + self.request_timeout_ms)
        if self.delivery_timeout_ms < shortest_ms and self.is_given("delivery_timeout_ms"):
            raise UserError(
                f"delivery.timeout.ms={self.delivery_timeout_ms}: expected at least linger.ms + "
                f"request.timeout.ms, {shortest_ms}"
            )
        self._check_idempotence()

    def _check_idempotence(self) -> None:
        if self.transactional_id is None and not self.transaction_two_phase_commit_enable:
            is_required, cause = self.is_given("enable_idempotence"), "enable.idempotence=true"
        else:
            is_required, cause = True, "transactional.id"
            if self.transactional_id is None:
                raise UserError("transaction.two.phase.commit.enable needs a transactional.id")
            if not self.enable_idempotence:
                raise UserError("enable.idempotence=false: transactional.id needs it to be true")
        if is_required and self.enable_idempotence and self._conflict is not None:
            raise UserError(f"{self._conflict} with {cause}")
        if self.transaction_two_phase_commit_enable and self.is_given("transaction_timeout_ms"):
            raise UserError(
                "transaction.timeout.ms: not allowed with transaction.two.phase.commit.enable=true"
            )

    @property
    def _conflict(self) -> str | None:
        """The setting that rules out idempotence."""
        if self.required_acks != -1:
            return f"acks={self.acks}: expected all"
        if self.retries == 0:
            return "retries=0: expected at least 1"
        if self.max_in_flight_requests_per_connection > MAX_IDEMPOTENT_IN_FLIGHT:
            return (
                "max.in.flight.requests.per.connection="
                f"{self.max_in_flight_requests_per_connection}: expected at most 5"
            )
        return None

    @property
    def is_idempotent(self) -> bool:
        """Idempotence is on unless it is turned off, or another setting rules it out."""
        return self.enable_idempotence and self._conflict is None

    @property
    def required_acks(self) -> int:
        return -1 if self.acks == "all" else int(self.acks)

    @property
    def compression_level(self) -> int | None:
        levels = {
            "gzip": None if self.compression_gzip_level < 0 else self.compression_gzip_level,
            "lz4": self.compression_lz4_level,
            "zstd": self.compression_zstd_level,
        }
        return levels.get(self.compression_type)

    @property
    def delivery_ms(self) -> int:
        """`delivery.timeout.ms`, at least `linger.ms` + `request.timeout.ms`."""
        return max(self.delivery_timeout_ms, self.linger_ms + self.request_timeout_ms)


class ConsumerConfig(ClientConfig):
    """Settings of a consumer."""

    group_id: Annotated[
        str | None, Doc("The group whose members share the partitions of their topics.")
    ] = None
    group_instance_id: Annotated[
        str | None, Doc("Name of a static member: it may restart without a rebalance.")
    ] = None
    group_protocol: Annotated[
        str,
        OneOf(("classic", "consumer")),
        Doc("Group protocol: the members or the broker assign."),
    ] = "classic"
    group_remote_assignor: Annotated[
        str | None, Doc("The broker's assignor to use with group.protocol=consumer.")
    ] = None
    partition_assignment_strategy: Annotated[
        Words, Doc("Assignors of the classic protocol, the preferred one first.")
    ] = ("range", "cooperative-sticky")
    session_timeout_ms: Annotated[
        int,
        AtLeast(1),
        Doc("A member that sends no heartbeat for this long is removed from its group."),
    ] = 45_000
    heartbeat_interval_ms: Annotated[
        int, AtLeast(1), Doc("How often a member sends a heartbeat.")
    ] = 3_000
    max_poll_interval_ms: Annotated[
        int, AtLeast(1), Doc("A member that does not poll for this long leaves its group.")
    ] = 300_000
    max_poll_records: Annotated[int, AtLeast(1), Doc("Most records that one poll returns.")] = 500
    auto_offset_reset: Annotated[
        str,
        Matches(
            r"earliest|latest|none|by_duration:P\S+", "earliest, latest, none or by_duration:…"
        ),
        Doc("Where to start without a committed offset."),
    ] = "latest"
    enable_auto_commit: Annotated[bool, Doc("Commit consumed offsets periodically.")] = True
    auto_commit_interval_ms: Annotated[
        int, AtLeast(0), Doc("How often offsets are committed with enable.auto.commit.")
    ] = 5_000
    isolation_level: Annotated[
        str,
        OneOf(("read_uncommitted", "read_committed")),
        Doc("Whether records of open and aborted transactions are returned."),
    ] = "read_uncommitted"
    fetch_min_bytes: Annotated[
        int, AtLeast(0), Doc("Fewest bytes of a fetch response before fetch.max.wait.ms.")
    ] = 1
    fetch_max_bytes: Annotated[
        int,
        AtLeast(0),
        Doc("Most bytes of a fetch response; a larger first batch is still returned."),
    ] = 52_428_800
    fetch_max_wait_ms: Annotated[
        int, AtLeast(0), Doc("How long a broker waits for fetch.min.bytes.")
    ] = 500
    max_partition_fetch_bytes: Annotated[
        int, AtLeast(0), Doc("Most bytes of one partition in a fetch.")
    ] = 1_048_576
    check_crcs: Annotated[bool, Doc("Check the checksum of each batch.")] = True
    client_rack: Annotated[str, Doc("Rack of this client: fetch from a replica there.")] = ""
    exclude_internal_topics: Annotated[
        bool, Doc("A pattern does not match the internal topics.")
    ] = True
    allow_auto_create_topics: Annotated[
        bool, Doc("Subscribing to a topic may create it, where brokers allow that.")
    ] = True
    default_api_timeout_ms: Annotated[
        int, AtLeast(0), Doc("How long a call may take that has no timeout of its own.")
    ] = 60_000

    def check(self) -> None:
        super().check()
        if self.fetch_max_wait_ms > self.request_timeout_ms:
            raise UserError(
                f"fetch.max.wait.ms={self.fetch_max_wait_ms}: expected at most "
                f"request.timeout.ms, {self.request_timeout_ms}"
            )
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise UserError(
                f"heartbeat.interval.ms={self.heartbeat_interval_ms}: expected less than "
                f"session.timeout.ms, {self.session_timeout_ms}"
            )
        if self.group_instance_id is not None and self.group_id is None:
            raise UserError("group.instance.id needs a group.id")


def _as_argument(name: str) -> str:
    return name.replace(".", "_")


def _value(setting: Setting, value: object) -> Value:
    """A Python value for a setting: text, or a value of the setting's type."""
    if value is None:
        return setting.default
    if isinstance(value, bool | int | float | str):
        text = setting.show(value)
        assert text is not None
        if setting.optional and not text.strip():
            raise UserError(f"{setting.name}={text!r}: expected a value, or None")
        return setting.read(text)
    if isinstance(value, Iterable) and issubclass(setting.python, tuple | frozenset):
        return setting.read(",".join(str(item) for item in value))
    displayed = "[hidden]" if setting.sensitive else repr(value)
    raise UserError(f"{setting.name}={displayed}: expected {setting.python.__name__}")


def _address(server: str) -> Address:
    text = server.split("://", 1)[-1]
    host, colon, port = text.rpartition(":")
    if (text.startswith("[") and text.endswith("]")) or not colon:
        host, port = text, str(DEFAULT_PORT)
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise UserError(f"bootstrap.servers={server!r}: expected host:port, such as localhost:9092")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))
