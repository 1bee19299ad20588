"""A walk over a message's lengths before it is decoded, so that none of them can lie.

kio's native reader reserves memory for as many elements as an array claims to have, and aborts the
process when it cannot. Here every length is held against the bytes that are left, and the values
in all arrays and the tagged fields together against a budget, before kio sees the message. What is
counted is checked before it is walked, so a message that claims too much costs nothing.

The walk runs for every request, so it is written out as Python source for each message, one
straight function, and compiled once: three times as fast as a tree of closures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from struct import Struct, calcsize
from struct import error as StructError
from typing import Any, Final, NoReturn, TypeAlias

from ottla.model.errors import Disconnect
from ottla.protocol.schema import FIXED, Entity, Field, fields_of

MAX_VALUES: Final = 250_000
"""In all arrays of one request: about 12 ms to walk, 10 ms to decode, 16 MiB of Python objects."""
STRUCT_VALUES: Final = 4  # what a struct costs beside its fields, in values
TAG_VALUES: Final = 10  # what a tagged field costs: it is walked in plain Python, twice
MAX_TAGS: Final = 10_000
"""Tagged fields in one header or struct."""
MAX_STRING_BYTES: Final = 0x7FFF

# (message, position, values allowed) -> (position after it, values still allowed)
Walk: TypeAlias = Callable[[memoryview, int, int], tuple[int, int]]


class TooManyValues(Disconnect):
    """The arrays and tagged fields of a message hold more values than are allowed."""


def check(walk: Walk, body: memoryview, at: int, max_values: int = MAX_VALUES) -> None:
    """Raise Disconnect unless one whole message lies in the bytes from `at` on.

    TooManyValues if it holds more values than `max_values`, and may not hold more than are ever
    allowed.

    What follows it is ignored, as Kafka does: librdkafka's Metadata requests end with bytes too
    many.
    """
    try:
        end, _ = walk(body, at, max_values)
    except (IndexError, StructError):
        raise Disconnect("message is cut short") from None
    if end > len(body):
        raise Disconnect("message is cut short")


@cache
def walk_of(entity: Entity) -> Walk:
    """The walk over one message or struct: from where it begins to where it ends."""
    return _compile(lambda scope: _struct(entity, scope))


def read_uvarint(data: memoryview, at: int) -> tuple[int, int]:
    """An unsigned 31-bit number of at most five bytes, and the position after it."""
    value = data[at]
    if value < 0x80:
        return value, at + 1
    at += 1
    byte = data[at]
    value = value & 0x7F | (byte & 0x7F) << 7
    if byte < 0x80:
        return value, at + 1
    for shift in (14, 21, 28):
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 31:
                break
            return value, at + 1
    raise Disconnect("variable-length integer is too long")


def read_tag_count(data: memoryview, at: int, allowed: int = MAX_TAGS) -> tuple[int, int]:
    """How many tagged fields follow, and the position after that number.

    Each takes two bytes at least. More than are allowed are refused before one of them is walked.
    """
    count, at = read_uvarint(data, at)
    if count > allowed:
        raise Disconnect(f"too many tagged fields ({count})")
    if 2 * count > len(data) - at:
        raise Disconnect("message is cut short")
    return count, at


def skip_tags(data: memoryview, at: int, allowed: int = MAX_TAGS) -> tuple[int, int]:
    """The position after the tagged fields at `at`, whatever they are, and how many there were."""
    count, at = read_tag_count(data, at, allowed)
    for _ in range(count):
        _, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at)
        at += size
        if at > len(data):
            raise Disconnect("tagged field runs past the end")
    return at, count


def _refuse(reason: str, number: int) -> NoReturn:
    raise Disconnect(f"{reason} ({number})")


def _refuse_values(number: int, left: int) -> NoReturn:
    if left < -MAX_VALUES:
        raise Disconnect(f"array length ({number})")
    raise TooManyValues(f"array length ({number})")


Scope: TypeAlias = dict[str, Any]
Lines: TypeAlias = Iterator[str]


def _compile(lines: Callable[[Scope], Lines]) -> Walk:
    scope: Scope = {
        "uvarint": read_uvarint,
        "int32": Struct(">i").unpack_from,
        "refuse": _refuse,
        "refuse_values": _refuse_values,
    }
    body = "\n ".join(lines(scope)) or "pass"
    exec(f"def walk(data, at, left):\n {body}\n return at, left", scope)
    walk: Walk = scope["walk"]
    return walk


def _struct(entity: Entity, scope: Scope) -> Lines:
    """The lines that walk a struct's fields; those of fixed size are one addition together."""
    flexible, skip = entity.__flexible__, 0
    for field in fields_of(entity):
        if field.tag is not None:
            continue
        if field.wire_type in FIXED and not field.is_array:
            skip += _size(field)
            continue
        if skip:
            yield f"at += {skip}"
            skip = 0
        yield from _field(field, flexible, scope)
    if skip:
        yield f"at += {skip}"
    if flexible:
        tags = f"tags_{len(scope)}"
        scope[tags] = _tags(entity)
        yield f"if data[at]: at, left = {tags}(data, at, left)"
        yield "else: at += 1"


def _field(field: Field, flexible: bool, scope: Scope) -> Lines:
    if field.is_array:
        yield from _array(field, flexible, scope)
    elif field.struct is not None:
        inside = _struct(field.struct, scope)
        yield from _optional(inside) if field.nullable else inside
    elif field.wire_type in FIXED:
        yield f"at += {_size(field)}"
    elif flexible:
        yield from _compact(field)
    else:
        yield from _plain(field)


def _plain(field: Field) -> Lines:
    if field.wire_type == "string":
        yield "n = data[at] << 8 | data[at + 1]"
        yield "at += 2"
        yield f"if n > {MAX_STRING_BYTES}: n -= 0x10000"
    else:
        yield "n, = int32(data, at)"
        yield "at += 4"
    lowest = -1 if field.nullable else 0
    yield f"if n < {lowest}: refuse('negative length', n)"
    yield "if n > 0: at += n"


def _compact(field: Field) -> Lines:
    yield "n = data[at]"
    yield "at += 1"
    yield "if n > 127: n, at = uvarint(data, at - 1)"
    if field.wire_type == "string":
        yield f"if n > {MAX_STRING_BYTES + 1}: refuse('string is too long', n)"
    if not field.nullable:
        yield "if not n: refuse('null where a value must be', 0)"
    yield "if n: at += n - 1"


def _optional(inside: Lines) -> Lines:
    yield "n = data[at]"
    yield "at += 1"
    yield "if n != 255:"
    yield " if n != 1: refuse('struct is neither there nor null', n)"
    yield from (" " + line for line in inside)


def _array(field: Field, flexible: bool, scope: Scope) -> Lines:
    item = field._replace(is_array=False, nullable=False)
    cost = 1 if item.struct is None else STRUCT_VALUES + len(fields_of(item.struct))
    if flexible:
        yield "n = data[at]"
        yield "at += 1"
        yield "if n > 127: n, at = uvarint(data, at - 1)"
        yield "n -= 1"
    else:
        yield "n, = int32(data, at)"
        yield "at += 4"
    yield f"left -= n * {cost}"
    lowest = -1 if field.nullable else 0
    yield (
        f"if n < {lowest} or n * {_smallest(item, flexible)} > len(data) - at: "
        "refuse('array length', n)"
    )
    yield "if left < 0: refuse_values(n, left)"
    if item.wire_type in FIXED:
        yield f"if n > 0: at += n * {_size(item)}"
    else:
        yield "for _ in range(n):"
        yield from (" " + line for line in _field(item, flexible, scope))


def _tags(entity: Entity) -> Walk:
    """The walk over tagged fields, known and unknown; most messages have none."""
    known = {
        field.tag: _tagged_field(field._replace(nullable=field.struct is None))
        for field in fields_of(entity)
        if field.tag is not None
    }

    def walk(data: memoryview, at: int, left: int) -> tuple[int, int]:
        count, at = read_tag_count(data, at)
        left -= count * TAG_VALUES
        if left < 0:
            raise TooManyValues(f"too many tagged fields ({count})")
        for _ in range(count):
            tag, at = read_uvarint(data, at)
            size, at = read_uvarint(data, at)
            end = at + size
            if end > len(data):
                raise Disconnect("tagged field runs past the end")
            if tag in known:
                at, left = known[tag](data, at, left)
                if at != end:
                    raise Disconnect(f"tagged field {tag} has the wrong size")
            at = end
        return at, left

    return walk


def _tagged_field(field: Field) -> Walk:
    return _compile(lambda scope: _field(field, True, scope))


def _size(field: Field) -> int:
    return calcsize(">" + FIXED[field.wire_type])


def _smallest(field: Field, flexible: bool) -> int:
    """The fewest bytes that a value of this field can take."""
    if field.is_array:
        return 1 if flexible else 4
    if field.wire_type in FIXED:
        return _size(field)
    if field.struct is None:
        return 1 if flexible else (2 if field.wire_type == "string" else 4)
    if field.nullable:
        return 1
    inside = [inner for inner in fields_of(field.struct) if inner.tag is None]
    return sum(_smallest(inner, flexible) for inner in inside) + (1 if flexible else 0)
