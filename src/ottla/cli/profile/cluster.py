"""Which cluster a command means.

Owns: the order in which that is decided: `-b` after the command, `-b` before it, `--profile`,
OTTLA_BOOTSTRAP_SERVER, the profile in use, localhost. Pure but for reading the profiles.

Properties of a profile go with its own servers, or where `--profile` was options: what one cluster
needs, a password perhaps, is not sent to another because a profile happens to be in use.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ottla.cli.profile.profiles import SERVERS, Profiles, file_path, load, usable
from ottla.config.client import ClientConfig
from ottla.config.properties import parse, read_client_file
from ottla.config.providers import resolve
from ottla.model.errors import UserError

DEFAULT_SERVER: Final = "localhost:9092"
SERVERS_VARIABLE: Final = "OTTLA_BOOTSTRAP_SERVER"
PROFILE_VARIABLE: Final = "OTTLA_PROFILE"


class Cluster(str):
    """The servers to begin with, as one text, and the client properties that go with them."""

    __slots__ = ("properties",)
    properties: Mapping[str, str]

    def __new__(cls, servers: str, properties: Mapping[str, str] | None = None) -> Cluster:
        cluster = super().__new__(cls, servers)
        cluster.properties = properties or {}
        return cluster


class ClusterOptions(NamedTuple):
    """Where the cluster is named: after the command, before it, by profile or variable."""

    after: str | None = None
    before: str | None = None
    profile: str | None = None
    variable: str | None = None


def choose_cluster(options: ClusterOptions, profiles: Profiles) -> Cluster:
    """The cluster to use: the option nearest to the command wins."""
    explicit = options.after or options.before
    name = options.profile or (None if explicit or options.variable else profiles.current)
    properties = {} if name is None else profiles.of(name)
    servers = explicit or properties.get(SERVERS) or options.variable or DEFAULT_SERVER
    return Cluster(servers, properties)


def resolve_cluster(
    after: str | None, before: str | None, profile: str | None, file: Path | None = None
) -> Cluster:
    """The cluster to use, with the environment, the user's profiles and a file of settings."""
    if file is not None:
        if profile is not None:
            raise UserError("--profile and --command-config: give one of them")
        settings = read_client_file(file, os.environ)
        servers = after or before or settings.get(SERVERS) or os.environ.get(SERVERS_VARIABLE)
        return Cluster(servers or DEFAULT_SERVER, settings)
    named = profile or os.environ.get(PROFILE_VARIABLE) or None
    options = ClusterOptions(after, before, named, os.environ.get(SERVERS_VARIABLE) or None)
    if named is None and (options.after or options.before or options.variable):
        return choose_cluster(options, Profiles({}, None))  # the file is not needed
    cluster = choose_cluster(options, load(file_path(os.environ)))
    return Cluster(str(cluster), resolve(cluster.properties, os.environ, parse))


def client_config(bootstrap: str, kind: type[ClientConfig]) -> dict[str, str]:
    """The settings by which a client of this kind reaches the cluster."""
    properties = bootstrap.properties if isinstance(bootstrap, Cluster) else {}
    return {**usable(properties, kind), SERVERS: str(bootstrap)}
