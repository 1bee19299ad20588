"""Who a log directory belongs to: meta.properties, and the rules for several of them.

Owns: the file's text in both versions (0: broker.id, 1: node.id as KRaft writes it), and the
decision which broker and cluster a set of directories makes.
Never: reads or writes a file, draws an id. Both come from the caller, so that a refusal can be
tested without a disk.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from ottla.log.directories.partition_metadata import id_text
from ottla.model.errors import UserError
from ottla.model.ids import BrokerId

FILE_NAME: Final = "meta.properties"

_ID_KEYS: Final = {0: "broker.id", 1: "node.id"}


class MetaProperties(NamedTuple):
    """The meta.properties of one directory. A new version 0 file may lack any field."""

    broker_id: BrokerId | None
    cluster_id: str | None
    directory_id: UUID | None = None
    version: int = 0

    @classmethod
    def parse(cls, text: str, *, source: str) -> MetaProperties:
        values = _properties(text)
        version = _number(values.get("version", "0"), "version", source)
        if version not in _ID_KEYS:
            raise UserError(f"{source}: unsupported version {version}, expected 0 or 1")
        id_key = _ID_KEYS[version]
        broker_id = values.get(id_key)
        if version == 1 and (broker_id is None or "cluster.id" not in values):
            raise UserError(f"{source}: version 1 needs both node.id and cluster.id")
        return cls(
            None if broker_id is None else BrokerId(_number(broker_id, id_key, source)),
            values.get("cluster.id"),
            _directory_id(values.get("directory.id"), source),
            version,
        )

    def text(self) -> str:
        lines = {
            "version": str(self.version),
            "cluster.id": self.cluster_id,
            _ID_KEYS[self.version]: None if self.broker_id is None else str(self.broker_id),
            "directory.id": None if self.directory_id is None else id_text(self.directory_id),
        }
        return "".join(f"{key}={value}\n" for key, value in lines.items() if value is not None)


class Identity(NamedTuple):
    """Broker and cluster id of all directories; None where none has it yet."""

    broker_id: BrokerId | None
    cluster_id: str | None


def common_identity(
    metas: Mapping[Path, MetaProperties], configured_id: BrokerId | None
) -> Identity:
    """The one broker and cluster that all directories and the configuration name.

    A broker id of None means that it must be generated and written to every directory.
    """
    ids = {path: meta.broker_id for path, meta in metas.items() if meta.broker_id is not None}
    clusters = {path: meta.cluster_id for path, meta in metas.items() if meta.cluster_id}
    _same("broker id", ids)
    _same("cluster id", clusters)
    stored = next(iter(ids.values()), None)
    if configured_id is not None and stored not in (None, configured_id):
        raise UserError(
            f"broker.id {configured_id} is configured, but {next(iter(ids)) / FILE_NAME} "
            f"says {stored}: use that id, or another data directory"
        )
    chosen = configured_id if configured_id is not None else stored
    if chosen is not None and chosen < 0:
        raise UserError(f"broker.id: expected 0 or more, got {chosen}")
    return Identity(chosen, next(iter(clusters.values()), None))


def check_cluster(identity: Identity, cluster_id: str) -> None:
    """A directory of another cluster must not be served under this one."""
    if identity.cluster_id not in (None, cluster_id):
        raise UserError(
            f"cluster id mismatch: the data directories belong to {identity.cluster_id}, "
            f"the metadata store to {cluster_id}"
        )


def missing_directories(registered: Iterable[UUID], present: Iterable[UUID]) -> frozenset[UUID]:
    """Directories that the cluster knew on this broker and that are not there any more.

    A broker that returns with an empty or another disk under its old id lacks data it once
    acknowledged: it must leave every ISR before it may be elected, and a single node must not
    start without the operator's word.
    """
    return frozenset(registered) - frozenset(present)


def id_from_text(text: str) -> UUID:
    return UUID(bytes=urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def _same(what: str, values: Mapping[Path, object]) -> None:
    if len(set(values.values())) > 1:
        listed = ", ".join(f"{path}: {value}" for path, value in values.items())
        raise UserError(f"log directories disagree on the {what}: {listed}")


def _properties(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith(("#", "!")))
    return {key.strip(): value.strip() for key, found, value in pairs if found}


def _number(text: str, key: str, source: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UserError(f"{source}: {key}: expected a whole number, got {text!r}") from None


def _directory_id(text: str | None, source: str) -> UUID | None:
    if text is None:
        return None
    try:
        return id_from_text(text)
    except ValueError:
        raise UserError(f"{source}: directory.id: expected a base64 uuid, got {text!r}") from None
