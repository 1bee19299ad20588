"""Checks every length in a message before kio decodes it.

kio's native reader allocates memory for as many elements as an array claims to have, and aborts the
process when it cannot. Here every length is compared with the bytes that are left, and the number
of values in all arrays and tagged fields with a limit, before kio reads the message. A count is
checked before its elements are walked, so a message that claims too much costs nothing.

The check runs for every request, so it is generated as Python source for each message, one
function, and compiled once: three times as fast as a tree of closures.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import cache
from struct import Struct, calcsize
from struct import error as StructError
from typing import Any, Final, NoReturn, TypeAlias

from ottla.model.errors import Disconnect
from ottla.protocol.schema import FIXED, Entity, Field, fields_of

MAX_VALUES: Final = 250_000
"""Of all arrays of one request: about 12 ms to walk, 10 ms to decode, 16 MiB of Python objects."""
STRING_VALUES: Final = 2  # what a string in an array costs: it takes twice as long as a number
STRUCT_VALUES: Final = 4  # what a struct costs beside its fields, in values
TAG_VALUES: Final = 10  # what a tagged field costs: it is walked in plain Python, twice
MAX_TAGS: Final = 10_000
"""Tagged fields in one header or struct."""
MAX_STRING_BYTES: Final = 0x7FFF

# (message, position, values allowed) -> (position after it, values still allowed)
Walk: TypeAlias = Callable[[memoryview, int, int], tuple[int, int]]
WalkInPieces: TypeAlias = Callable[[memoryview, int, int], Generator[None, None, tuple[int, int]]]
PIECE: Final = 20_000
"""Elements that are walked between two turns of the loop: 2 ms."""


class TooManyValues(Disconnect):
    """The arrays and tagged fields of a message have more values than allowed."""


def check(walk: Walk, body: memoryview, position: int, max_values: int = MAX_VALUES) -> None:
    """Raise Disconnect unless the bytes from `position` on start with one complete message.

    TooManyValues if it has more values than `max_values`, but perhaps no more than `MAX_VALUES`.

    Bytes after the message are ignored, as Kafka does: librdkafka's Metadata requests have some.
    """
    try:
        end, _ = walk(body, position, max_values)
    except (IndexError, StructError):
        raise Disconnect("message is cut short") from None
    if end > len(body):
        raise Disconnect("message is cut short")


def check_in_pieces(
    walk: WalkInPieces, body: memoryview, position: int, max_values: int = MAX_VALUES
) -> Generator[None, None, None]:
    """As `check`; yields between slices."""
    try:
        end, _ = yield from walk(body, position, max_values)
    except (IndexError, StructError):
        raise Disconnect("message is cut short") from None
    if end > len(body):
        raise Disconnect("message is cut short")


@cache
def walk_of(entity: Entity) -> Walk:
    """The function that walks over one message or struct, from its start to its end."""
    return compile_walk(entity, _tags)


@cache
def walk_in_pieces_of(entity: Entity) -> WalkInPieces:
    """The same as a generator, which yields after every `PIECE` elements of arrays."""
    walk: WalkInPieces = _compile(
        lambda scope: _generator(_struct(entity, scope)), _tags, {"in_pieces": True}
    )
    return walk


def _generator(inside: Lines) -> Lines:
    yield "turn = 0"
    yield "if 0: yield"
    yield from inside


def compile_walk(entity: Entity, tags: Callable[[Entity], Walk]) -> Walk:
    """The same, with another function for the tagged fields of each struct."""
    walk: Walk = _compile(lambda scope: _struct(entity, scope), tags)
    return walk


def read_uvarint(data: memoryview, position: int) -> tuple[int, int]:
    """An unsigned 31-bit number of at most five bytes, and the position after it."""
    value = data[position]
    if value < 0x80:
        return value, position + 1
    position += 1
    byte = data[position]
    value = value & 0x7F | (byte & 0x7F) << 7
    if byte < 0x80:
        return value, position + 1
    for shift in (14, 21, 28):
        position += 1
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 31:
                break
            return value, position + 1
    raise Disconnect("variable-length integer is too long")


def read_tag_count(data: memoryview, position: int, allowed: int = MAX_TAGS) -> tuple[int, int]:
    """The number of tagged fields, and the position after that number.

    Each has two bytes at least. Too many are refused before the first of them is walked.
    """
    count, position = read_uvarint(data, position)
    if count > allowed:
        raise Disconnect(f"too many tagged fields ({count})")
    if 2 * count > len(data) - position:
        raise Disconnect("message is cut short")
    return count, position


def skip_tags(data: memoryview, position: int, allowed: int = MAX_TAGS) -> tuple[int, int]:
    """The position after the tagged fields at `position`, and their number."""
    count, position = read_tag_count(data, position, allowed)
    for _ in range(count):
        _, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        position += size
        if position > len(data):
            raise Disconnect("tagged field runs past the end")
    return position, count


def _refuse(reason: str, number: int) -> NoReturn:
    raise Disconnect(f"{reason} ({number})")


def _refuse_values(number: int, left: int) -> NoReturn:
    if left < -MAX_VALUES:
        raise Disconnect(f"too many array elements, array length ({number})")
    raise TooManyValues(f"too many array elements, array length ({number})")


Scope: TypeAlias = dict[str, Any]
Lines: TypeAlias = Iterator[str]


def _compile(
    lines: Callable[[Scope], Lines],
    tags: Callable[[Entity], Walk],
    more: Scope | None = None,
) -> Any:
    scope: Scope = {
        **(more or {}),
        "tags_of": tags,
        "uvarint": read_uvarint,
        "int32": Struct(">i").unpack_from,
        "refuse": _refuse,
        "refuse_values": _refuse_values,
    }
    body = "\n ".join(lines(scope)) or "pass"
    exec(f"def walk(data, at, left):\n {body}\n return at, left", scope)
    return scope["walk"]


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
        scope[tags] = scope["tags_of"](entity)
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
        yield "if not n: refuse('null for a field that is not nullable', 0)"
    yield "if n: at += n - 1"


def _optional(inside: Lines) -> Lines:
    yield "n = data[at]"
    yield "at += 1"
    yield "if n != 255:"
    yield " if n != 1: refuse('invalid presence byte of a nullable struct', n)"
    yield from (" " + line for line in inside)


def _array(field: Field, flexible: bool, scope: Scope) -> Lines:
    item = field._replace(is_array=False, nullable=False)
    if item.struct is not None:
        cost = STRUCT_VALUES + len(fields_of(item.struct))
    else:
        cost = 1 if item.wire_type in FIXED else STRING_VALUES
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
        "refuse('invalid array length', n)"
    )
    yield "if left < 0: refuse_values(n, left)"
    if item.wire_type in FIXED:
        yield f"if n > 0: at += n * {_size(item)}"
    else:
        yield "for _ in range(n):"
        if "in_pieces" in scope:
            yield " turn += 1"
            yield f" if turn > {PIECE}:"
            yield "  turn = 0; yield"
        yield from (" " + line for line in _field(item, flexible, scope))


def _tags(entity: Entity) -> Walk:
    """The function that walks over tagged fields, known and unknown; most messages have none."""
    walks = {
        field.tag: _tagged_field(field._replace(nullable=field.struct is None))
        for field in fields_of(entity)
        if field.tag is not None
    }

    def walk(data: memoryview, position: int, values_left: int) -> tuple[int, int]:
        count, position = read_tag_count(data, position)
        values_left -= count * TAG_VALUES
        if values_left < 0:
            raise TooManyValues(f"too many tagged fields ({count})")
        for _ in range(count):
            tag, position = read_uvarint(data, position)
            size, position = read_uvarint(data, position)
            end = position + size
            if end > len(data):
                raise Disconnect("tagged field runs past the end")
            if tag in walks:
                position, values_left = walks[tag](data, position, values_left)
                if position != end:
                    raise Disconnect(f"tagged field {tag} has the wrong size")
            position = end
        return position, values_left

    return walk


def _tagged_field(field: Field) -> Walk:
    walk: Walk = _compile(lambda scope: _field(field, True, scope), _tags)
    return walk


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
