"""Shell completion: names of topics, groups, settings and others that begin with the typed word.

Owns: fetching them within a short time limit, and returning nothing on any failure: a user who
presses the tab key must never get an error message in the middle of a line. Clients are imported
on use: every command imports this module.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from ottla.client.admin.sync import Admin

TIMEOUT_MS: Final = "1500"
TIMEOUT_VARIABLE: Final = "OTTLA_COMPLETION_TIMEOUT_MS"
VARIABLES: Final = ("_TYPER_COMPLETE_ARGS", "COMP_WORDS")


def topic_names(context: typer.Context, incomplete: str) -> list[str]:
    """Topics of the cluster."""
    return _fetch_names(context, incomplete, lambda admin: admin.list_topics())


def group_names(context: typer.Context, incomplete: str) -> list[str]:
    """Groups of the cluster."""
    return _fetch_names(
        context, incomplete, lambda admin: [group.id for group in admin.list_groups()]
    )


def transactional_ids(context: typer.Context, incomplete: str) -> list[str]:
    """Transactional ids of the cluster."""
    return _fetch_names(
        context, incomplete, lambda admin: [listing.id for listing in admin.list_transactions()]
    )


def resource_names(context: typer.Context, incomplete: str) -> list[str]:
    """Names of topics, groups or brokers, depending on KIND."""
    kind = _kind(context)
    if kind == "group":
        return group_names(context, incomplete)
    if kind in ("broker", "loggers"):
        return _fetch_names(
            context,
            incomplete,
            lambda admin: [str(broker.id) for broker in admin.describe_cluster().brokers],
        )
    return topic_names(context, incomplete)


def profile_names(incomplete: str) -> list[str]:
    """Profiles of the user."""
    from ottla.cli.profile.profiles import file_path, load

    try:
        return _beginning(load(file_path(os.environ)).profiles, incomplete)
    except Exception:  # no names are better than an error message
        return []


def topic_settings(incomplete: str) -> list[str]:
    """`KEY=` for each setting of topics."""
    from ottla.config.topic import TopicConfig

    return _beginning((f"{name}=" for name in TopicConfig.SETTINGS), incomplete)


def broker_settings(incomplete: str) -> list[str]:
    """`KEY=` for each setting of brokers."""
    from ottla.config.broker import BrokerConfig

    return _beginning((f"{name}=" for name in BrokerConfig.SETTINGS), incomplete)


def client_settings(incomplete: str) -> list[str]:
    """`KEY=` for each setting of producers and consumers."""
    from ottla.config.client import ConsumerConfig, ProducerConfig

    names = {*ProducerConfig.SETTINGS, *ConsumerConfig.SETTINGS}
    return _beginning((f"{name}=" for name in names), incomplete)


def completed_words(environment: Mapping[str, str]) -> list[str]:
    """The words typed so far, without the program's name; none if nothing is being completed."""
    for name in VARIABLES:
        if name in environment:
            return environment[name].split()[1:]
    return []


def _kind(context: typer.Context) -> str | None:
    """KIND on the command line so far.

    An option that still lacks its value, the usual case while it is completed, ends the parsing
    before arguments are assigned: KIND is then the first of the words that are left.
    """
    kind = context.params.get("kind")
    if kind is None:
        return context.args[0] if context.args else None
    return str(getattr(kind, "value", kind))


def _fetch_names(
    context: typer.Context, incomplete: str, fetch: Callable[[Admin], Iterable[str]]
) -> list[str]:
    """Names from the cluster; none if it cannot be reached or does not reply in time."""
    from ottla.cli.profile.cluster import client_config, resolve_cluster
    from ottla.client.admin.sync import Admin
    from ottla.config.client import AdminConfig

    root = context.find_root().params
    try:
        bootstrap = context.params.get("bootstrap") or resolve_cluster(
            None, root.get("bootstrap"), root.get("profile")
        )
        timeout_ms = os.environ.get(TIMEOUT_VARIABLE, TIMEOUT_MS)
        config = {
            **client_config(bootstrap, AdminConfig),
            "default.api.timeout.ms": timeout_ms,
            "request.timeout.ms": timeout_ms,
            "socket.connection.setup.timeout.ms": timeout_ms,
        }
        with Admin(config=config) as admin:
            return _beginning(fetch(admin), incomplete)
    except Exception:  # no names are better than an error message
        return []


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
