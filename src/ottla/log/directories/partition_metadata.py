"""The topic id of a partition directory: the `partition.metadata` file.

Two lines, `version: 0` and `topic_id: <22 characters>`, the id in URL-safe base64 without
padding, as Kafka prints ids. A directory whose id is not the topic's belongs to a deleted topic of
the same name.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from typing import Final
from uuid import UUID

from ottla.log.files import Disk
from ottla.model.ids import NO_TOPIC_ID, TopicId

FILE_NAME: Final = "partition.metadata"
_CONTENT: Final = re.compile(r"version: 0\ntopic_id: ([A-Za-z0-9_-]{22})\n?")


def encode(topic_id: TopicId) -> bytes:
    return f"version: 0\ntopic_id: {id_text(topic_id)}".encode()


def id_text(topic_id: TopicId) -> str:
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def decode(content: bytes) -> TopicId:
    """The id; NO_TOPIC_ID where the file is not what was written, as after a power cut."""
    found = _CONTENT.fullmatch(content.decode("latin-1").replace("\r\n", "\n"))
    return UUID(bytes=urlsafe_b64decode(found[1] + "==")) if found else NO_TOPIC_ID


def read(disk: Disk, dir: Path) -> TopicId:
    path = dir / FILE_NAME
    return decode(disk.read(path)) if disk.exists(path) else NO_TOPIC_ID
