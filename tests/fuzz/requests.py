"""Valid requests of every served API and version, with values that reach deep.

Owns: choosing values for the fields of a message by its declaration. Never: damages a frame.
Names and ids are few, so that frames meet topics that exist. Most numbers are small, so that a
frame is cheap to serve; some are the largest and smallest there are: such a frame decodes, and it
is the handler that must not trust it.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final
from uuid import UUID

from ottla.api import APIS
from ottla.protocol import wire
from ottla.protocol.records.compression import Codec
from ottla.protocol.schema import Field, MessageKind, fields_of, message
from tests.bad_input.batches import DAMAGED
from tests.raw_requests import batch

TOPICS: Final = (
    "t0", "t1", "t2", "t0", "__consumer_offsets", "nobody", "", "..", "t0\0", "é", "x" * 300, "0",
)  # fmt: skip
SETTINGS: Final = (
    "retention.ms", "segment.bytes", "cleanup.policy", "compact", "delete", "-1", "1", "1048576",
    "max.message.bytes", "compression.type", "gzip", "zstd", "nonsense", "",
)  # fmt: skip
INTEGERS: Final = (-1, -1, 0, 0, 0, 1, 2, 3, 100)
TIMES_MS: Final = (0, 0, 1, 5, 20)
WILD: Final = 0.04
"""How often a number is as extreme as its type allows."""
WIDTHS: Final = {
    "int8": 8, "uint8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64,
}  # fmt: skip
NO_ID: Final = UUID(int=0)
CALLS: Final = [(api.key, version) for api in APIS for version in api.versions]


class Requests:
    """Frames from dice. `topic_ids` are those of topics that exist."""

    def __init__(self, dice: Random, topic_ids: Sequence[UUID] = ()) -> None:
        self._dice = dice
        self._ids = [NO_ID, UUID(int=7), *topic_ids]
        self._batches = self._make_batches()

    def any(self) -> bytes:
        return self.of(*self._dice.choice(CALLS))

    def of(self, key: int, version: int) -> bytes:
        """One framed request."""
        entity = message(key, version, MessageKind.REQUEST)
        fields = {field.name: self._value(field) for field in fields_of(entity)}
        client = self._dice.choice(("fuzz", "", None, "é\n"))
        return wire.encode_request(key, version, self._dice.getrandbits(31), client, fields)

    def _value(self, field: Field) -> Any:
        dice = self._dice
        if field.nullable and dice.random() < 0.2:
            return None
        if field.is_array:
            one = field._replace(is_array=False, nullable=False)
            return [self._value(one) for _ in range(dice.choice((0, 1, 1, 1, 2, 3)))]
        if field.struct is not None:
            return {inner.name: self._value(inner) for inner in fields_of(field.struct)}
        return self._plain(field)

    def _plain(self, field: Field) -> Any:
        dice = self._dice
        match field.wire_type:
            case "string" if dice.random() < 0.3:
                return dice.choice(SETTINGS)
            case "string":
                return dice.choice(TOPICS)
            case "records" | "bytes":
                return dice.choice(self._batches)
            case "uuid":
                return dice.choice(self._ids)
            case "bool":
                return dice.random() < 0.5
            case "float64":
                return 0.5
            case "timedelta_i32" | "timedelta_i64" | "datetime_i64":
                wild = field.wire_type == "timedelta_i32" and dice.random() < WILD / 4
                return dice.choice((2**31 - 1, -(2**31))) if wild else dice.choice(TIMES_MS)
            case "error_code":
                return 0
            case _:
                return self._number(field)

    def _number(self, field: Field) -> int:
        dice, kind = self._dice, field.wire_type
        if dice.random() < WILD:
            signed = kind.startswith("i")
            most: int = 2 ** (WIDTHS[kind] - signed) - 1
            return dice.choice((most, most - 1, -most - 1 if signed else 0))
        if WIDTHS[kind] == 8:
            return dice.choice((0, 1, 2))
        return 0 if "partition" in field.name else dice.choice(INTEGERS)

    def _make_batches(self) -> list[bytes]:
        good = [
            batch("value"),
            batch("a", "b", "c"),
            batch("x" * 300, producer_id=5, producer_epoch=0, base_sequence=0),
            batch("y", producer_id=2**63 - 1, producer_epoch=2**15 - 1, base_sequence=2**31 - 1),
            batch("z", transactional=True, producer_id=6, producer_epoch=0, base_sequence=0),
            *(batch("v" * 50, codec=codec) for codec in Codec),
        ]
        bad = [records for records, _ in DAMAGED.values() if records and len(records) < 1000]
        return [*good * 5, *bad]
