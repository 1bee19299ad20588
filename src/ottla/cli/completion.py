"""What a shell offers for the word that is being typed: names that the cluster knows.

Owns: asking for them quickly, and saying nothing when that fails: a person who presses the tab key
wants words or nothing, never an error message in the middle of a line. What it needs for that is
imported then: every command imports this module.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from ottla.client.admin.sync import Admin

PATIENCE_MS: Final = "1500"
PATIENCE_VARIABLE: Final = "OTTLA_COMPLETION_TIMEOUT_MS"
VARIABLES: Final = ("_TYPER_COMPLETE_ARGS", "COMP_WORDS")


def topic_names(context: typer.Context, incomplete: str) -> list[str]:
    """Topics of the cluster."""
    return _asked(context, incomplete, lambda admin: admin.list_topics())


def group_names(context: typer.Context, incomplete: str) -> list[str]:
    """Groups of the cluster."""
    return _asked(context, incomplete, lambda admin: [one.id for one in admin.list_groups()])


def transactional_ids(context: typer.Context, incomplete: str) -> list[str]:
    """Transactional ids of the cluster."""
    return _asked(context, incomplete, lambda admin: [one.id for one in admin.list_transactions()])


def resource_names(context: typer.Context, incomplete: str) -> list[str]:
    """Topics or groups or brokers, as KIND says."""
    kind = getattr(context.params.get("kind"), "value", context.params.get("kind"))
    if kind == "group":
        return group_names(context, incomplete)
    if kind in ("broker", "loggers"):
        return _asked(
            context,
            incomplete,
            lambda admin: [str(one.id) for one in admin.describe_cluster().brokers],
        )
    return topic_names(context, incomplete)


def profile_names(incomplete: str) -> list[str]:
    """Profiles of the user."""
    from ottla.cli.profile.profiles import file_path, load

    try:
        return _beginning(load(file_path(os.environ)).profiles, incomplete)
    except Exception:  # see above: nothing is better than an error
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


def _asked(
    context: typer.Context, incomplete: str, ask: Callable[[Admin], Iterable[str]]
) -> list[str]:
    """What the cluster says, if it says it soon."""
    from ottla.cli.profile.cluster import client_config, resolved
    from ottla.client.admin.sync import Admin
    from ottla.config.client import AdminConfig

    root = context.find_root().params
    try:
        given = context.params.get("bootstrap")
        bootstrap = given or resolved(None, root.get("bootstrap"), root.get("profile"))
        patience_ms = os.environ.get(PATIENCE_VARIABLE, PATIENCE_MS)
        config = {
            **client_config(bootstrap, AdminConfig),
            "default.api.timeout.ms": patience_ms,
            "request.timeout.ms": patience_ms,
            "socket.connection.setup.timeout.ms": patience_ms,
        }
        with Admin(config=config) as admin:
            return _beginning(ask(admin), incomplete)
    except Exception:  # see above: nothing is better than an error
        return []


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
