"""AlterConfigs and IncrementalAlterConfigs. Pure.

Owns: the four operations, and the errors sent to clients. Takes the stored overrides and returns
those to store; never stores them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.config.broker import BrokerConfig
from ottla.config.dynamic import DynamicConfig, Overrides
from ottla.config.group import GroupConfig
from ottla.config.listener_settings import base_name
from ottla.config.listeners import Listeners
from ottla.config.retired import not_offered
from ottla.config.settings import InvalidValue, Setting, Settings, Type
from ottla.config.topic import TopicConfig
from ottla.model.errors import ErrorCode, KafkaError, UserError

THREAD_COUNTS: Final = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)


DUPLICATES: Final = "Error due to duplicate config keys"

BY_LISTENER: Final = ("ssl.key.password", "ssl.keystore.", "ssl.truststore.")
"""Stores are replaced live for one listener at a time, as in Kafka."""


class AlterOperation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    name: str
    operation: int
    value: str | None


def alter_overrides(
    kind: type[TopicConfig] | type[GroupConfig],
    broker: BrokerConfig,
    alterations: Sequence[Alteration],
    stored: Overrides,
) -> dict[str, str]:
    """The overrides of a topic or a group after these operations, or KafkaError."""
    overrides = _apply(kind, stored, alterations)
    check(kind, broker, overrides)
    return overrides


def altered_broker(
    config: DynamicConfig,
    alterations: Sequence[Alteration],
    stored: Overrides | None = None,
    *,
    whole_cluster: bool,
) -> dict[str, str]:
    """The overrides of this broker, or of all brokers, after these operations on what is stored;
    None: on what this broker has read last."""
    if stored is None:
        stored = config.cluster if whole_cluster else config.broker
    overrides = _apply(BrokerConfig, stored, alterations)
    check_broker(config, overrides, whole_cluster=whole_cluster)
    return overrides


def replace_overrides(pairs: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """AlterConfigs: the overrides are exactly these; all others are removed."""
    overrides: dict[str, str] = {}
    for name, value in pairs:
        if value is None:
            raise _null(name)
        if name in overrides:
            raise KafkaError(ErrorCode.invalid_request, DUPLICATES)
        overrides[name] = value
    return overrides


def _null(name: str) -> KafkaError:
    return KafkaError(ErrorCode.invalid_request, f"Null value not supported for : {name}")


def _to_client(error: UserError) -> str:
    """The message in a reply: of an invalid value in Kafka's form."""
    return error.to_client if isinstance(error, InvalidValue) else str(error)


def check(
    kind: type[TopicConfig] | type[GroupConfig], broker: BrokerConfig, overrides: Overrides
) -> None:
    try:
        kind.check(broker, overrides)
    except UserError as error:
        raise KafkaError(ErrorCode.invalid_config, _to_client(error)) from error


def check_broker(config: DynamicConfig, overrides: Overrides, *, whole_cluster: bool) -> None:
    """As Kafka, INVALID_REQUEST if a known setting cannot be changed like this.

    An unknown name is stored and has no effect, as in Kafka: it may belong to a plugin, or to a
    newer version of the broker.
    """
    for name in overrides:
        setting = BrokerConfig.SETTINGS.get(base_name(name))
        if setting is None:
            reason = not_offered(name)
            if reason is not None:
                raise KafkaError(ErrorCode.invalid_request, f"{name}: {reason}")
            continue
        if setting.scope is None:
            raise KafkaError(
                ErrorCode.invalid_request, f"Cannot update these configs dynamically: [{name}]"
            )
        if name.startswith(BY_LISTENER) and not whole_cluster:
            raise KafkaError(
                ErrorCode.invalid_request,
                f"{name} can be changed only for a listener: listener.name.<name>.{name}",
            )
        if setting.scope == "broker" and whole_cluster:
            raise KafkaError(
                ErrorCode.invalid_request, f"{name} can be changed only for a single broker"
            )
    try:
        # Each value by itself: one for all brokers may be hidden by this broker's own.
        BrokerConfig.read({n: text for n, text in overrides.items() if n in BrokerConfig.SETTINGS})
        changed = config.with_overrides(
            cluster=overrides if whole_cluster else config.cluster,
            broker=config.broker if whole_cluster else overrides,
        )
        Listeners.of(config.current).check_successor(Listeners.of(changed))
        _check_thread_counts(config.current, changed)
        for validate in config.validators:
            validate(changed)
    except UserError as error:
        raise KafkaError(ErrorCode.invalid_request, _to_client(error)) from error


def _check_thread_counts(now: BrokerConfig, changed: BrokerConfig) -> None:
    """Kafka's bound on one step: from half to double the present number of threads."""
    for name in THREAD_COUNTS:
        before, after = int(now.text(name) or 0), int(changed.text(name) or 0)
        if not before // 2 <= after <= before * 2:
            raise UserError(
                f"{name}={after}: expected between half and double the present {before}"
            )


def _apply(
    kind: type[Settings], stored: Overrides, alterations: Sequence[Alteration]
) -> dict[str, str]:
    overrides = dict(stored)
    names: set[str] = set()
    for alteration in alterations:
        if alteration.name in names:
            raise KafkaError(ErrorCode.invalid_request, DUPLICATES)
        names.add(alteration.name)
        _alter(kind, overrides, alteration)
    return overrides


def _alter(kind: type[Settings], overrides: dict[str, str], alteration: Alteration) -> None:
    name, operation, value = alteration
    if operation == AlterOperation.DELETE:
        overrides.pop(name, None)
        return
    if value is None:
        raise _null(name)
    match operation:
        case AlterOperation.SET:
            overrides[name] = value
        case AlterOperation.APPEND:
            items = _items(kind, overrides, name, "APPEND")
            items += [item for item in _split(value) if item not in items]
            overrides[name] = ",".join(items)
        case AlterOperation.SUBTRACT:
            items = _items(kind, overrides, name, "SUBTRACT")
            for item in _split(value):
                if item in items:
                    items.remove(item)
            overrides[name] = ",".join(items)
        case _:
            raise KafkaError(
                ErrorCode.invalid_request, f"unknown operation {operation}; expected 0 to 3"
            )


def _items(
    kind: type[Settings], overrides: Mapping[str, str], name: str, operation: str
) -> list[str]:
    """The list to change: the override, or the default if there is none."""
    setting = _setting(kind, name)
    if setting.kind is not Type.LIST:
        raise KafkaError(
            ErrorCode.invalid_config,
            f"Can't {operation} to key {name} because its type is not LIST.",
        )
    return _split(overrides.get(name, setting.show(setting.default) or ""))


def _split(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _setting(kind: type[Settings], name: str) -> Setting:
    setting = kind.SETTINGS.get(name)
    if setting is None:
        raise KafkaError(ErrorCode.invalid_config, f"{name}: unknown setting")
    return setting
