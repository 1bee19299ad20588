"""The four codecs of a record batch, each with a bound on the decompressed size.

Owns the framing that Kafka's clients use for each codec (gzip member, xerial snappy blocks, lz4 and
zstd frames). Never trusts a size inside the data: before decompression the output is bounded by
`max_bytes`, and by the capacity of the frame's blocks if that is less, so a few bytes cannot make
the broker allocate gigabytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import cramjam

from ottla.protocol.records.compression import Bytes, Codec
from ottla.protocol.records.header import CorruptBatch

_inflater: Any = zlib
with suppress(ImportError):  # the same result, three times as fast
    from isal import isal_zlib as _inflater


def compress(codec: Codec, data: Bytes, level: int | None) -> bytes:
    """`data` under `codec`, framed as Kafka's own clients frame it."""
    if codec is Codec.GZIP:
        return zlib.compress(data, -1 if level is None else level, 31)
    if codec is Codec.SNAPPY:
        return _compress_snappy(data)
    if codec is Codec.LZ4:
        # Java's reader does not support linked blocks.
        stream = cramjam.lz4.Compressor(level, content_checksum=False, block_linked=False)
        stream.compress(bytes(data))  # it takes no views
        return bytes(stream.finish())
    return bytes(cramjam.zstd.compress(data, 3 if level is None else level))


def decompress(codec: Codec, data: Bytes, max_bytes: int, *, old_lz4: bool) -> bytes:
    """As `compression.decompress`."""
    if codec is Codec.LZ4 and old_lz4:
        data = _without_header_checksum(data)
    try:
        return _DECOMPRESS[codec](memoryview(data), max_bytes)
    except (cramjam.DecompressionError, _inflater.error, IndexError) as error:
        raise CorruptBatch(f"cannot decompress {codec.name.lower()} data: {error}") from error


def _gunzip(data: memoryview, max_bytes: int) -> bytes:
    stream = _inflater.decompressobj(wbits=31)
    out = stream.decompress(data, max_bytes + 1)
    if len(out) > max_bytes:
        raise _too_large(max_bytes)
    if not stream.eof:
        raise CorruptBatch("gzip data is incomplete", len(data))
    if stream.unused_data:  # a second member: no producer writes one, an attack may have many
        raise CorruptBatch("bytes after the gzip data", len(data) - len(stream.unused_data))
    return bytes(out)


XERIAL: Final = b"\x82SNAPPY\x00" + (1).to_bytes(4, "big") * 2
XERIAL_BLOCK_BYTES: Final = 32 * 1024


def _compress_snappy(data: Bytes) -> bytes:
    parts = [XERIAL]
    for position in range(0, len(data), XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[position : position + XERIAL_BLOCK_BYTES]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _unsnappy(data: memoryview, max_bytes: int) -> bytes:
    if bytes(data[:8]) != XERIAL[:8]:  # some clients send one bare block
        return _unsnappy_block(data, max_bytes)
    out: list[bytes] = []
    position, left = len(XERIAL), max_bytes
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        block = data[position + 4 : position + 4 + size]
        if size == 0 or len(block) != size:
            raise CorruptBatch(f"snappy block has invalid size {size}", position)
        out.append(_unsnappy_block(block, left))
        left -= len(out[-1])
        position += 4 + size
    return b"".join(out)


def _unsnappy_block(block: memoryview, max_bytes: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(block) > max_bytes:
        raise _too_large(max_bytes)
    return bytes(cramjam.snappy.decompress_raw(block))


def _inflate_into(
    bound: Callable[[memoryview, int], int], inflate: Callable[[memoryview, bytearray], int]
) -> Callable[[memoryview, int], bytes]:
    """A codec that decompresses into a buffer bounded by its frames and by the caller."""

    def run(data: memoryview, max_bytes: int) -> bytes:
        out = bytearray(bound(data, max_bytes))
        size = inflate(data, out)
        return bytes(memoryview(out)[:size])

    return run


LZ4_MAGIC: Final = 0x184D2204
ZSTD_MAGIC: Final = 0xFD2FB528
SKIPPABLE_MAGIC: Final = 0x184D2A50  # to ...5F, in both formats
ZSTD_BLOCK_BYTES: Final = 128 * 1024


def _lz4_bound(data: memoryview, max_bytes: int) -> int:
    """The largest decompressed size of these lz4 frames, or `max_bytes` if that is less."""
    bound, position = 0, 0
    while position < len(data):
        magic = int.from_bytes(data[position : position + 4], "little")
        if magic & ~0xF == SKIPPABLE_MAGIC:
            position += 8 + int.from_bytes(data[position + 4 : position + 8], "little")
            continue
        if magic != LZ4_MAGIC:
            raise CorruptBatch("not an lz4 frame", position)
        flags, block_bytes = data[position + 4], 1 << (8 + 2 * (data[position + 5] >> 4 & 7))
        position += 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
        while size := int.from_bytes(data[position : position + 4], "little"):
            stored = size & 0x7FFF_FFFF
            # One byte of an lz4 block yields at most 255.
            bound += min(block_bytes, stored if size >> 31 else stored * 255)
            if bound >= max_bytes:
                return max_bytes
            position += 4 + stored + (4 if flags & 0x10 else 0)
        position += 4 + (4 if flags & 0x04 else 0)
    return bound


def _zstd_bound(data: memoryview, max_bytes: int) -> int:
    """The largest decompressed size of these zstd frames, or `max_bytes` if that is less."""
    bound, position = 0, 0
    while position < len(data):
        magic = int.from_bytes(data[position : position + 4], "little")
        if magic & ~0xF == SKIPPABLE_MAGIC:
            position += 8 + int.from_bytes(data[position + 4 : position + 8], "little")
            continue
        if magic != ZSTD_MAGIC:
            raise CorruptBatch("not a zstd frame", position)
        flags = data[position + 4]
        single = flags >> 5 & 1
        content_size = (single, 2, 4, 8)[flags >> 6]
        position += 5 + (1 - single) + (0, 1, 2, 4)[flags & 3] + content_size
        last = False
        while not last:
            if len(data) - position < 3:
                raise CorruptBatch("zstd frame is incomplete", position)
            block = int.from_bytes(data[position : position + 3], "little")
            last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
            bound += ZSTD_BLOCK_BYTES if kind == 2 else size
            if bound >= max_bytes:
                return max_bytes
            position += 3 + (1 if kind == 1 else size)  # kind 1 repeats one byte
        position += 4 if flags & 0x04 else 0
    return bound


def _without_header_checksum(data: Bytes) -> bytes:
    """The lz4 frame with a correct header checksum."""
    frame = bytearray(data)
    if len(frame) >= 7:
        end = 6 + (8 if frame[4] & 0x08 else 0)
        if len(frame) > end:
            frame[end] = _xxh32_short(frame[4:end]) >> 8 & 0xFF
    return bytes(frame)


def _xxh32_short(data: bytearray) -> int:
    """xxHash32 with seed 0 of fewer than 16 bytes: the largest size of an lz4 frame descriptor."""
    mask = 0xFFFF_FFFF
    digest = 374761393 + len(data)
    aligned = len(data) - len(data) % 4
    for position in range(0, aligned, 4):
        lane = int.from_bytes(data[position : position + 4], "little")
        digest = (digest + lane * 3266489917) & mask
        digest = ((digest << 17 | digest >> 15) & mask) * 668265263 & mask
    for byte in data[aligned:]:
        digest = (digest + byte * 374761393) & mask
        digest = ((digest << 11 | digest >> 21) & mask) * 2654435761 & mask
    digest = (digest ^ digest >> 15) * 2246822519 & mask
    digest = (digest ^ digest >> 13) * 3266489917 & mask
    return digest ^ digest >> 16


def _too_large(max_bytes: int) -> CorruptBatch:
    return CorruptBatch(f"decompressed records are larger than {max_bytes} bytes")


_DECOMPRESS: Final[dict[Codec, Callable[[memoryview, int], bytes]]] = {
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _unsnappy,
    Codec.LZ4: _inflate_into(_lz4_bound, cramjam.lz4.decompress_into),
    Codec.ZSTD: _inflate_into(_zstd_bound, cramjam.zstd.decompress_into),
}
