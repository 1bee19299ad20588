"""The metadata and assignments of classic consumers (ConsumerProtocolSubscription, -Assignment).

Pure. In the classic protocol only members read these bytes. A group with members of both protocols
has to read the metadata and write the assignments; versions 0 to 3 differ in what follows the
topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.coordinator.record_fields import Reader, Writer

FIRST_WITH_OWNED: Final = 1
FIRST_WITH_RACK: Final = 3
NEWEST: Final = 3


class ClassicSubscription(NamedTuple):
    topics: tuple[str, ...]
    owned: Mapping[str, list[int]]
    rack_id: str | None
    version: int


def read_subscription(metadata: bytes) -> ClassicSubscription | None:
    """None if it is malformed. Newer versions extend the newest known one and are read as that."""
    try:
        reader = Reader(metadata)
        version = min(reader.version, NEWEST)
        topics = tuple(reader.text() for _ in range(reader.array()))
        reader.blob()
        owned = _partitions(reader) if version >= FIRST_WITH_OWNED else {}
        if version >= FIRST_WITH_RACK:
            reader.int32()  # the generation it held them in
            return ClassicSubscription(topics, owned, reader.string(), version)
        return ClassicSubscription(topics, owned, None, version)
    except ValueError:
        return None


def read_assignment(assignment: bytes) -> Mapping[str, list[int]] | None:
    """None if it is malformed; an empty assignment has no partitions."""
    if not assignment:
        return {}
    try:
        return _partitions(Reader(assignment))
    except ValueError:
        return None


def write_assignment(topics: Mapping[str, list[int]], version: int) -> bytes:
    out = Writer(version).array(len(topics))
    for name, partitions in topics.items():
        out.string(name).array(len(partitions))
        for partition in partitions:
            out.int32(partition)
    return out.blob(None).done()


def _partitions(reader: Reader) -> dict[str, list[int]]:
    return {
        reader.text(): [reader.int32() for _ in range(reader.array())]
        for _ in range(reader.array())
    }
