"""kafka-configs.sh: describe and change settings, as Kafka's tool does."""

from __future__ import annotations

import ipaddress
import re
import sys
from argparse import Namespace
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Final

from ottla.cli.connection import admin_connection
from ottla.cli.kafka import quota_configs, user_configs
from ottla.cli.kafka.arguments import Arguments, ToolError, UsageError, is_given, properties
from ottla.cli.kafka.servers import bootstrap
from ottla.client.admin import ConfigEntry, ConfigSource, Resource, ResourceKind
from ottla.client.admin.sync import Admin
from ottla.client.errors import UnsupportedVersion
from ottla.model.errors import KafkaError, UserError
from ottla.security.quotas.entities import DEFAULT, Name

KINDS: Final = {
    "topics": ResourceKind.TOPIC,
    "brokers": ResourceKind.BROKER,
    "broker-loggers": ResourceKind.BROKER_LOGGER,
    "groups": ResourceKind.GROUP,
}
FLAGS: Final = {
    "topic": "topics",
    "client": "clients",
    "user": "users",
    "broker": "brokers",
    "broker_logger": "broker-loggers",
    "ip": "ips",
    "group": "groups",
}
"""Options that give a type and a name in one."""
DEFAULT_FLAGS: Final = {
    "client_defaults": "clients",
    "user_defaults": "users",
    "broker_defaults": "brokers",
    "ip_defaults": "ips",
}
WITH_DEFAULTS: Final = ("users", "clients", "brokers", "ips")
NUMBERED: Final = ("brokers", "broker-loggers")
OWN: Final = {
    ResourceKind.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ResourceKind.BROKER: ConfigSource.DYNAMIC_BROKER_CONFIG,
    ResourceKind.BROKER_LOGGER: ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
    ResourceKind.GROUP: ConfigSource.DYNAMIC_GROUP_CONFIG,
}
NO_CHANGE: Final = (
    "At least one of --add-config, --add-config-file, or --delete-config must be specified with "
    "--alter"
)
_PAIR: Final = re.compile(r"\s*([^=,\s]+)\s*=\s*(\[[^\]]*\]|[^,\[]*)\s*(?:,|$)")


def run(arguments: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    action = parser.exactly_one(
        options,
        ("describe", "alter"),
        "Command must include exactly one action: --describe, --alter",
    )
    parser.not_together(options, {"describe": ("add_config", "add_config_file", "delete_config")})
    try:
        entities = _entities(options)
        _check(action, entities, options)
        with admin_connection(bootstrap(options)) as admin:
            _do(admin, action, entities, options)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 1
    except (ToolError, KafkaError) as error:
        command_line = " ".join(_without_passwords(arguments))
        print(f"Error while executing config command with args '{command_line}'", file=sys.stderr)
        print(error, file=sys.stderr)
        return 1
    return 0


def _without_passwords(arguments: Sequence[str]) -> list[str]:
    return [re.sub(r"password=[^,\]]*", "password=[hidden]", text) for text in arguments]


def _entities(options: Namespace) -> list[tuple[str, Name | None]]:
    """The types on the command line, each with its name; None means every name."""
    kinds: list[str] = list(options.entity_type or ())
    names: list[Name] = [name or DEFAULT for name in options.entity_name or ()]
    flags = [flag for flag in FLAGS if is_given(options, flag)]
    defaults = [flag for flag in DEFAULT_FLAGS if is_given(options, flag)]
    if (kinds or names) and (flags or defaults):
        raise UsageError(
            "--entity-{type,name,default} should not be used in conjunction with specific entity "
            "flags"
        )
    kinds += [*(FLAGS[flag] for flag in flags), *(DEFAULT_FLAGS[flag] for flag in defaults)]
    names += [*(getattr(options, flag) or DEFAULT for flag in flags), *(DEFAULT for _ in defaults)]
    _check_kinds(kinds)
    if len(names) > len(kinds):
        raise UsageError("More entity names specified than entity types")
    return list(zip_longest(kinds, names))


def _check_kinds(kinds: Sequence[str]) -> None:
    known = [*KINDS, *quota_configs.KINDS]
    for kind in kinds:
        if kind not in known:
            raise UsageError(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(known)}"
            )
    if not kinds:
        raise UsageError("At least one entity type must be specified")
    repeated = sorted({kind for kind in kinds if kinds.count(kind) > 1})
    if repeated:
        raise UsageError(f"Duplicate entity type(s) specified: {','.join(repeated)}")
    if len(kinds) > 1 and set(kinds) != {"users", "clients"}:
        raise UsageError("Only 'users' and 'clients' entity types may be specified together")


def _check(action: str, entities: Sequence[tuple[str, Name | None]], options: Namespace) -> None:
    """Names that are missing or impossible, in Kafka's words."""
    kind, name = entities[0]
    named = name is not None and name is not DEFAULT
    if named and kind in NUMBERED and not _is_int32(str(name)):
        raise UsageError(
            f"The entity name for {kind} must be a valid integer broker id, but it is: {name}"
        )
    if named and kind == "ips" and not _is_host(str(name)):
        raise UsageError(
            f"The entity name for {kind} must be a valid IP or resolvable host, but it is: {name}"
        )
    if action == "describe":
        if name is DEFAULT and kind not in WITH_DEFAULTS and options.entity_name:
            raise UsageError(f"--entity-default must not be specified with --describe of {kind}")
        return
    if kind not in WITH_DEFAULTS and not named:
        raise UsageError(f"An entity name must be specified with --alter of {kind}")
    if all(name is None for _, name in entities):
        raise UsageError(
            "An entity-name or default entity must be specified with --alter of users, clients, "
            "brokers or ips"
        )
    if options.add_config is not None and options.add_config_file is not None:
        raise UsageError("Only one of --add-config or --add-config-file must be specified")
    if not any(is_given(options, o) for o in ("add_config", "add_config_file", "delete_config")):
        raise UsageError(NO_CHANGE)


def _is_int32(text: str) -> bool:
    return re.fullmatch("[+-]?[0-9]{1,10}", text) is not None and -(2**31) <= int(text) < 2**31


def _is_host(name: str) -> bool:
    """An address, or what may be the name of a host: whether it is one, the broker finds out."""
    if not re.fullmatch("[0-9.]+|.*:.*", name):
        return re.fullmatch("[A-Za-z0-9_.-]+", name) is not None
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _do(
    admin: Admin, action: str, entities: list[tuple[str, Name | None]], options: Namespace
) -> None:
    kind, name = entities[0]
    if kind in quota_configs.KINDS:
        _alter_clients(admin, action, entities, options)
        return
    named = "" if name is DEFAULT else None if name is None else str(name)
    if action == "describe":
        _describe(admin, KINDS[kind], named, everything=options.all)
    else:
        _alter(admin, KINDS[kind], named or "", options)


def _alter_clients(
    admin: Admin, action: str, entities: list[tuple[str, Name | None]], options: Namespace
) -> None:
    """Quotas, and the credentials of a single user."""
    only_user = len(entities) == 1 and entities[0][0] == "users" and entities[0][1] is not DEFAULT
    user = str(entities[0][1]) if only_user and entities[0][1] is not None else None
    if action == "describe":
        quota_configs.describe(admin, entities)
        if only_user:
            user_configs.describe(admin, user)
        return
    changes = _changes(options)
    if changes and all(key in quota_configs.KEYS for key in changes):
        quota_configs.alter(admin, entities, changes)
    elif only_user:
        user_configs.alter(admin, user, options, listed_pairs)
    else:
        raise ToolError(f"Only quotas of these entities can be changed: {', '.join(changes)}")


def _resources(admin: Admin, kind: ResourceKind, name: str | None) -> list[Resource]:
    if name is not None:
        return [Resource(kind, name)]
    if kind is ResourceKind.TOPIC:
        return [Resource.topic(topic) for topic in admin.list_topics(internal=True)]
    if kind is ResourceKind.GROUP:
        return _groups(admin)
    ids = [broker.id for broker in admin.describe_cluster().brokers]
    if kind is ResourceKind.BROKER:
        return [*(Resource.broker(id) for id in ids), Resource.broker(None)]
    return [Resource.loggers(id) for id in ids]


def _groups(admin: Admin) -> list[Resource]:
    """Groups that are there, then those that only have settings."""
    resources = [Resource.group(group.id) for group in admin.list_groups()]
    try:
        with_settings = admin.list_config_resources([ResourceKind.GROUP])
    except UnsupportedVersion:  # before Kafka 4.1 nobody could ask for them
        with_settings = []
    return list(dict.fromkeys([*resources, *with_settings]))


def _describe(admin: Admin, kind: ResourceKind, name: str | None, *, everything: bool) -> None:
    one_group = kind is ResourceKind.GROUP and name is not None
    if one_group and not everything and Resource(kind, name or "") not in _groups(admin):
        print(f"The group '{name}' doesn't exist and doesn't have dynamic config.")
        return
    for resource in _resources(admin, kind, name):
        _describe_one(admin, resource, everything=everything)


def _describe_one(admin: Admin, resource: Resource, *, everything: bool) -> None:
    entries = admin.describe_configs([resource], synonyms=True).one()
    named = resource.kind.name.lower().replace("_", "-")
    if not resource.name:
        print(f"Default configs for {named}s in the cluster are:")
        own = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    else:
        print(f"{'All' if everything else 'Dynamic'} configs for {named} {resource.name} are:")
        own = OWN[resource.kind]
    for entry in sorted(entries.values(), key=lambda entry: entry.name):
        if everything or entry.source is own:
            print(entry_line(entry))


def entry_line(entry: ConfigEntry) -> str:
    """`  name=value sensitive=false synonyms={SOURCE:name=value, ...}`."""
    synonyms = ", ".join(
        f"{synonym.source.name}:{synonym.name}={synonym.value}" for synonym in entry.synonyms
    )
    value = "null" if entry.value is None else entry.value
    sensitive = str(entry.sensitive).lower()
    return f"  {entry.name}={value} sensitive={sensitive} synonyms={{{synonyms}}}"


def _alter(admin: Admin, kind: ResourceKind, name: str, options: Namespace) -> None:
    changes = _changes(options)
    if not changes:
        raise UsageError(NO_CHANGE)
    admin.incremental_alter_configs({Resource(kind, name): changes}).all()
    named = kind.name.lower().replace("_", "-")
    default = f"default config for {named}s in the cluster"
    print(f"Completed updating {f'config for {named} {name}' if name else default}.")


def _changes(options: Namespace) -> dict[str, str | None]:
    """The new value of each setting; None deletes it."""
    changes: dict[str, str | None] = dict.fromkeys(
        key.strip() for text in options.delete_config or () for key in text.split(",")
    )
    changes |= properties(options.add_config_file)
    for text in options.add_config or ():
        changes |= listed_pairs(text)
    return changes


def listed_pairs(text: str) -> dict[str, str]:
    """`k1=v1,k2=[v21,v22]`: brackets hold values with commas."""
    values, position = {}, 0
    while position < len(text):
        pair = _PAIR.match(text, position)
        if pair is None:
            raise UserError(f"--add-config {text!r}: expected key=value,key=[value,value]")
        values[pair[1]] = pair[2].strip().removeprefix("[").removesuffix("]")
        position = pair.end()
    return values


def _parser() -> Arguments:
    parser = Arguments("kafka-configs.sh", "Describe and change settings.")
    parser.cluster()
    for flag in (
        "describe",
        "alter",
        "all",
        "broker-defaults",
        "user-defaults",
        "client-defaults",
        "ip-defaults",
    ):
        parser.flag(f"--{flag}")
    parser.add_argument("--entity-type", action="append")
    parser.add_argument("--entity-name", action="append")
    parser.add_argument(
        "--entity-default", dest="entity_name", action="append_const", const=DEFAULT
    )
    for option in (
        "client",
        "ip",
        "topic",
        "broker",
        "broker-logger",
        "group",
        "user",
    ):
        parser.add_argument(f"--{option}")
    parser.add_argument("--add-config", action="append")
    parser.add_argument("--add-config-file", type=Path)
    parser.add_argument("--delete-config", action="append")
    return parser
