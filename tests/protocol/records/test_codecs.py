"""Each codec in Kafka's framing, and none of them can be made to fill the memory."""

from __future__ import annotations

import gzip
import resource
import struct
import tracemalloc
import zlib

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.records.compression import Codec, compress, decompress
from ottla.protocol.records.header import CorruptBatch

REAL = list(Codec)[1:]
LIMIT = 1 << 20


@pytest.mark.spec("REC-06", "REC-26")
@pytest.mark.parametrize("codec", Codec)
@given(data=st.binary(max_size=2_000).flatmap(lambda b: st.sampled_from([b, b * 50, b * 500])))
def test_data_comes_back_as_it_went_in(codec: Codec, data: bytes) -> None:
    assert decompress(codec, compress(codec, data), len(data)) == data
    assert decompress(codec, memoryview(compress(codec, data)), len(data) + 1) == data


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_any_kind_of_buffer_is_compressed(codec: Codec, kind: type) -> None:
    assert compress(codec, kind(b"some data")) == compress(codec, b"some data")


@pytest.mark.parametrize("codec", REAL)
def test_one_byte_more_than_allowed_is_corrupt(codec: Codec) -> None:
    data = bytes(range(256)) * 1_000
    with pytest.raises(CorruptBatch):
        decompress(codec, compress(codec, data), len(data) - 1)


def bombs() -> dict[str, tuple[Codec, bytes]]:
    """A few kilobytes each that ask for hundreds of megabytes or more."""
    size = 256 << 20
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    gzipped = b"".join(deflate.compress(bytes(1 << 20)) for _ in range(256)) + deflate.flush()
    zstd_repeat = struct.pack("<I", 0x1FFFF << 3 | 1 << 1)[:3] + b"\0"  # one byte, 131071 times
    lz4_header = b"\x04\x22\x4d\x18\x60\x70\x73"
    return {
        "gzip": (Codec.GZIP, gzipped),
        "snappy length": (Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(64)),
        "snappy length in a block": (
            Codec.SNAPPY,
            compress(Codec.SNAPPY, b"")[:16] + b"\0\0\0\x0a" + b"\xff\xff\xff\xff\x0f12345",
        ),
        "lz4": (Codec.LZ4, bytes(cramjam.lz4.compress(bytes(size)))),
        "lz4 blocks": (Codec.LZ4, lz4_header + b"\xff\xff\xff\x7f" * 1000),
        "zstd": (Codec.ZSTD, bytes(cramjam.zstd.compress(bytes(size)))),
        "zstd repeats": (Codec.ZSTD, b"\x28\xb5\x2f\xfd\x00\x58" + zstd_repeat * 4_000),
        "zstd content size": (
            Codec.ZSTD, b"\x28\xb5\x2f\xfd\xe0" + b"\xff" * 8 + b"\x01\x00\x00",
        ),
    }  # fmt: skip


BOMBS = bombs()


@pytest.mark.spec("REC-26")
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_within_bounded_memory(name: str) -> None:
    codec, data = BOMBS[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        with pytest.raises(CorruptBatch):
            decompress(codec, data, LIMIT)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * LIMIT
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024  # kilobytes


@pytest.mark.parametrize("codec", REAL)
def test_a_small_batch_reserves_little_however_much_is_allowed(codec: Codec) -> None:
    data = compress(codec, b"small" * 10)
    tracemalloc.start()
    try:
        decompress(codec, data, 1 << 30)
        assert tracemalloc.get_traced_memory()[1] < 512 * 1024
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", REAL)
@given(data=st.data())
def test_damage_is_corrupt_or_harmless_but_nothing_else(codec: Codec, data: st.DataObject) -> None:
    good = bytearray(compress(codec, b"some records " * 20))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(good)))
        good[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    try:
        assert len(decompress(codec, good, LIMIT)) <= LIMIT
    except CorruptBatch:
        return


@pytest.mark.parametrize("codec", REAL)
@given(noise=st.binary(max_size=100))
def test_noise_is_corrupt_or_harmless_but_nothing_else(codec: Codec, noise: bytes) -> None:
    try:
        assert len(decompress(codec, noise, LIMIT)) <= LIMIT
    except CorruptBatch:
        return


@pytest.mark.parametrize("codec", REAL)
def test_no_part_of_the_data_is_taken_for_the_whole(codec: Codec) -> None:
    whole = b"some records " * 20
    data = compress(codec, whole)
    for end in range(1, len(data)):
        try:
            assert decompress(codec, data[:end], LIMIT) != whole
        except CorruptBatch:
            continue


def test_gzip_is_read_from_any_writer_and_holds_one_member() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"abc"), 10) == b"abc"
    with pytest.raises(CorruptBatch, match="bytes after"):
        decompress(Codec.GZIP, gzip.compress(b"abc") * 2, 10)


def test_snappy_is_framed_in_blocks_and_read_bare_too() -> None:
    data = bytes(range(256)) * 256
    framed = compress(Codec.SNAPPY, data)
    assert framed[:16] == b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(data)), len(data)) == data
    with pytest.raises(CorruptBatch, match="snappy block has invalid size"):
        decompress(Codec.SNAPPY, framed[:-1], len(data))


def test_lz4_blocks_stand_alone_as_java_wants_them() -> None:
    frame = compress(Codec.LZ4, b"abc" * 100_000)
    assert frame[:4] == b"\x04\x22\x4d\x18"
    assert frame[4] & 0x20
    linked = bytes(cramjam.lz4.compress(b"abc" * 100_000))
    assert not linked[4] & 0x20
    assert decompress(Codec.LZ4, linked, 300_000) == b"abc" * 100_000


@pytest.mark.spec("REC-28")
def test_the_wrong_header_checksum_of_old_lz4_writers_is_forgiven_where_asked() -> None:
    frame = bytearray(compress(Codec.LZ4, b"abc"))
    frame[6] ^= 0xFF
    with pytest.raises(CorruptBatch):
        decompress(Codec.LZ4, frame, 10)
    assert decompress(Codec.LZ4, frame, 10, old_lz4=True) == b"abc"


def test_frames_may_follow_each_other_and_carry_skippable_ones() -> None:
    skipped = b"\x50\x2a\x4d\x18\x03\0\0\0???"
    for codec in (Codec.LZ4, Codec.ZSTD):
        frames = compress(codec, b"abc") + compress(codec, b"def")
        assert decompress(codec, frames, 10) == b"abcdef"
    assert decompress(Codec.ZSTD, skipped + compress(Codec.ZSTD, b"abc"), 10) == b"abc"


@pytest.mark.parametrize(
    ("codec", "levels"), [(Codec.GZIP, (1, 9)), (Codec.LZ4, (1, 9)), (Codec.ZSTD, (-5, 1, 19))]
)
def test_levels_change_the_size_and_not_the_data(codec: Codec, levels: tuple[int, ...]) -> None:
    data = b"".join(b"%d squared is %d\n" % (n, n * n) for n in range(2_000))
    sizes = [len(compress(codec, data, level)) for level in levels]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]
    for level in levels:
        assert decompress(codec, compress(codec, data, level), len(data)) == data
