"""Which cluster a command means.

Owns: the order in which that is decided: `-b` after the command, `-b` before it, `--profile`,
OTTLA_BOOTSTRAP_SERVER, the profile in use, localhost. Pure but for reading the profiles.

Properties of a profile go with its own servers, or where `--profile` was given: what one cluster
needs, a password perhaps, is not sent to another because a profile happens to be in use.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.cli.profile.profiles import SERVERS, Profiles, file_path, load, usable
from ottla.config.client import ClientConfig

DEFAULT_SERVER: Final = "localhost:9092"
SERVERS_VARIABLE: Final = "OTTLA_BOOTSTRAP_SERVER"
PROFILE_VARIABLE: Final = "OTTLA_PROFILE"


class Cluster(str):
    """The servers to begin with, as one text, and the client properties that go with them."""

    __slots__ = ("properties",)
    properties: Mapping[str, str]

    def __new__(cls, servers: str, properties: Mapping[str, str] | None = None) -> Cluster:
        made = super().__new__(cls, servers)
        made.properties = properties or {}
        return made


class Given(NamedTuple):
    """What was said of the cluster; None where nothing was."""

    after: str | None = None
    before: str | None = None
    profile: str | None = None
    variable: str | None = None


def chosen(given: Given, profiles: Profiles) -> Cluster:
    """The cluster that is meant."""
    explicit = given.after or given.before
    name = given.profile or (None if explicit or given.variable else profiles.current)
    properties = {} if name is None else profiles.of(name)
    servers = explicit or properties.get(SERVERS) or given.variable or DEFAULT_SERVER
    return Cluster(servers, properties)


def resolved(after: str | None, before: str | None, profile: str | None) -> Cluster:
    """The same, with the environment and the user's file."""
    named = profile or os.environ.get(PROFILE_VARIABLE) or None
    given = Given(after, before, named, os.environ.get(SERVERS_VARIABLE) or None)
    if named is None and (given.after or given.before or given.variable):
        return chosen(given, Profiles({}, None))  # a file that cannot be read is no matter
    return chosen(given, load(file_path(os.environ)))


def client_config(bootstrap: str, kind: type[ClientConfig]) -> dict[str, str]:
    """The settings by which a client of this kind reaches the cluster."""
    properties = bootstrap.properties if isinstance(bootstrap, Cluster) else {}
    return {**usable(properties, kind), SERVERS: str(bootstrap)}
