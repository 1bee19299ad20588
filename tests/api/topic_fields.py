"""The fields of one topic in a CreateTopics request."""

from __future__ import annotations


def topic(name: str, **fields: object) -> dict[str, object]:
    return {
        "name": name,
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [],
        "configs": [],
        **fields,
    }
