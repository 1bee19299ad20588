"""Compression of the records of a batch: the codecs by name.

Owns the codec numbers of a batch. Never loads a codec before something is compressed or
decompressed: the libraries are megabytes, and many brokers never decompress a batch.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

Bytes: TypeAlias = bytes | bytearray | memoryview


class Codec(IntEnum):
    """The low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Codec, data: Bytes, level: int | None = None) -> bytes:
    """`data` compressed with `codec`, framed as Kafka's own clients do."""
    if codec is Codec.NONE:
        return bytes(data)
    from ottla.protocol.records import codecs

    return codecs.compress(codec, data, level)


def decompress(codec: Codec, data: Bytes, max_bytes: int, *, old_lz4: bool = False) -> bytes:
    """The decompressed data; CorruptBatch if it is damaged or larger than `max_bytes`.

    `old_lz4` accepts any lz4 header checksum: writers of message format v0 computed it wrongly.
    """
    if codec is Codec.NONE:
        return bytes(data)
    from ottla.protocol.records import codecs

    return codecs.decompress(codec, data, max_bytes, old_lz4=old_lz4)
