"""The walk over a batch's records as a native kernel.

Gives the same verdicts as `record.validate_records` at a fortieth of the cost; the tests compare
the two. Needs numba, which takes a moment to load and seconds to compile the first time: import
this module only where records are checked, never at start-up of a process that may not.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar, cast

import numba
import numpy as np

from ottla.protocol.records.batch import build
from ottla.protocol.records.compression import Bytes
from ottla.protocol.records.corrupt import CorruptBatch
from ottla.protocol.records.header import HEADER_SIZE, NO_TIMESTAMP, BatchHeader, read_header
from ottla.protocol.records.record import INT64_MAX, INT64_MIN, NewRecord, Summary

F = TypeVar("F")

_REASONS: Final = (
    "",
    "record runs past the end",
    "variable-length integer is too long",
    "variable-length integer is too large",
    "record has an impossible length",
    "field of a record has an impossible length",
    "record has an impossible number of headers",
    "record header has no key",
    "record length does not match its contents",
    "record has an impossible offset delta",
    "record has a timestamp out of range",
    "bytes after the last record",
)
(
    OK, PAST_END, VARINT_LONG, VARINT_LARGE, RECORD_LENGTH, FIELD_LENGTH, HEADER_COUNT, HEADER_KEY,
    MISMATCH, OFFSET_DELTA, TIMESTAMP, TRAILING,
) = range(12)  # fmt: skip


def validate_records(section: Bytes, header: BatchHeader, *, dense: bool) -> Summary:
    """As `record.validate_records`, natively."""
    if header.count < 0:
        raise CorruptBatch(f"batch counts {header.count} records", 57)
    data = np.frombuffer(section, dtype=np.uint8)
    fault, at, low, high, high_delta, null_key = _walk(
        data, header.count, header.base_timestamp, header.last_offset_delta, dense
    )
    if fault:
        raise CorruptBatch(_REASONS[fault], at)
    if header.count == 0:
        return Summary(NO_TIMESTAMP, NO_TIMESTAMP, -1, -1)
    return Summary(low, high, high_delta, null_key)


def warm_up() -> None:
    """Load the kernels, or compile them the first time, before a request has to wait for it."""
    one_record = build([NewRecord(b"", b"")])
    validate_records(one_record[HEADER_SIZE:], read_header(one_record), dense=True)
    validate_records(memoryview(one_record)[HEADER_SIZE:], read_header(one_record), dense=True)


def _native(function: F) -> F:
    """Compiled once per machine and kept beside this file; runs without the interpreter's lock."""
    try:
        return cast(F, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # nowhere to keep it: compile for this process alone
        return cast(F, numba.njit(nogil=True)(function))


@_native
def _varint(data: Any, at: int, bits: int) -> tuple[int, int, int]:
    """Zigzag value, the position after it, and what is wrong with it."""
    value = np.uint64(0)
    shift = 0
    while True:
        if at >= data.size:
            return 0, at, PAST_END
        byte = data[at]
        at += 1
        low = np.uint64(byte & 0x7F)
        if shift + 7 > bits and low >> np.uint64(bits - shift):
            # Which of the two faults it is depends on whether another byte follows.
            return 0, at, VARINT_LONG if byte > 0x7F else VARINT_LARGE
        value |= low << np.uint64(shift)
        if byte <= 0x7F:
            break
        shift += 7
        if shift >= bits:
            return 0, at, VARINT_LONG
    half: Any = np.int64(value >> np.uint64(1))
    return (~half if value & np.uint64(1) else half), at, OK


@_native
def _field(data: Any, at: int, end: int) -> tuple[int, int, int]:
    """Length of a length-prefixed field (-1 for null), what comes after it, and the fault."""
    length, at, fault = _varint(data, at, 32)
    if fault:
        return 0, at, fault
    if length < -1 or at + length > end:
        return 0, at, FIELD_LENGTH
    return length, at + max(length, 0), OK


@_native
def _headers(data: Any, at: int, end: int) -> tuple[int, int]:
    """The position after a record's headers, and the fault."""
    count, at, fault = _varint(data, at, 32)
    if fault:
        return at, fault
    if count < 0 or count > (end - at) // 2:
        return at, HEADER_COUNT
    for _ in range(count):
        length, at, fault = _field(data, at, end)
        if fault:
            return at, fault
        if length < 0:
            return at, HEADER_KEY
        length, at, fault = _field(data, at, end)
        if fault:
            return at, fault
    return at, OK


@_native
def _record(data: Any, at: int, end: int) -> tuple[int, int, int, int, int]:
    """Both deltas and the key's length of the record at `at`; where it was left, and the fault."""
    timestamp_delta, at, fault = _varint(data, at + 1, 64)
    if fault:
        return 0, 0, 0, at, fault
    offset_delta, at, fault = _varint(data, at, 32)
    if fault:
        return 0, 0, 0, at, fault
    key_length, at, fault = _field(data, at, end)
    if fault:
        return 0, 0, 0, at, fault
    _, at, fault = _field(data, at, end)
    if fault:
        return 0, 0, 0, at, fault
    at, fault = _headers(data, at, end)
    if not fault and at != end:
        fault = MISMATCH
    return timestamp_delta, offset_delta, key_length, at, fault


@_native
def _misplaced(delta: int, last_delta: int, last_offset_delta: int, expected: int) -> bool:
    """Whether an offset delta does not grow, leaves its batch, or is not the one expected."""
    if expected >= 0 and delta != expected:
        return True
    return delta <= last_delta or delta > last_offset_delta


@_native
def _overflows(base: int, delta: int) -> bool:
    """Whether the sum leaves 64 bits; asked before, as the compiler assumes it cannot after."""
    return base > INT64_MAX - delta if delta > 0 else base < INT64_MIN - delta


@_native
def _walk(
    data: Any, count: int, base_timestamp: int, last_offset_delta: int, dense: bool
) -> tuple[int, int, int, int, int, int]:
    """The first fault and its position, then a summary's four numbers."""
    at, last_delta, high_delta, null_key = 0, -1, -1, -1
    low, high = INT64_MAX, INT64_MIN
    for index in range(count):
        start = at
        length, at, fault = _varint(data, at, 32)
        if not fault and (length < 0 or at + length > data.size):
            fault = RECORD_LENGTH
        if fault:
            return fault, start, 0, 0, 0, 0
        timestamp_delta, offset_delta, key_length, at, fault = _record(data, at, at + length)
        if not fault and _misplaced(
            offset_delta, last_delta, last_offset_delta, index if dense else -1
        ):
            fault = OFFSET_DELTA
        if not fault and _overflows(base_timestamp, timestamp_delta):
            fault = TIMESTAMP
        if fault:
            return fault, start, 0, 0, 0, 0
        timestamp = base_timestamp + timestamp_delta
        last_delta = offset_delta
        low = min(low, timestamp)
        if timestamp > high:
            high, high_delta = timestamp, offset_delta
        if key_length < 0 and null_key < 0:
            null_key = index
    return (OK if at == data.size else TRAILING), at, low, high, high_delta, null_key
