"""The few elements of DER that certificates and keys need. Pure.

Owns: tag, length and value of one element. Never trusts a length: an element that does not fit into
the bytes around it is a `BadDer`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

SEQUENCE: Final = 0x30
SET: Final = 0x31
OBJECT_ID: Final = 0x06
OCTET_STRING: Final = 0x04
INTEGER: Final = 0x02
LENGTH_BYTES_MAX: Final = 4


class BadDer(ValueError):
    """The bytes are not the DER that was expected."""


class Element(NamedTuple):
    """`whole`: tag, length and value as they were encoded."""

    tag: int
    value: bytes
    whole: bytes

    def parts(self) -> list[Element]:
        return list(elements(self.value))

    def expect(self, tag: int) -> Element:
        if self.tag != tag:
            raise BadDer(f"expected tag {tag:#04x}, found {self.tag:#04x}")
        return self


def first(data: bytes) -> Element:
    for element in elements(data):
        return element
    raise BadDer("expected an element, found nothing")


def elements(data: bytes) -> Iterator[Element]:
    """The elements that stand one after the other in `data`."""
    position = 0
    while position < len(data):
        start = position
        if position + 2 > len(data):
            raise BadDer("an element is cut off")
        tag, length = data[position], data[position + 1]
        position += 2
        if length & 0x80:
            count = length & 0x7F
            if not 1 <= count <= LENGTH_BYTES_MAX or position + count > len(data):
                raise BadDer("invalid length of an element")
            length = int.from_bytes(data[position : position + count], "big")
            position += count
        if position + length > len(data):
            raise BadDer("an element is longer than the data around it")
        position += length
        yield Element(tag, data[position - length : position], data[start:position])


def object_id(value: bytes) -> str:
    """An object identifier in dotted form."""
    numbers: list[int] = []
    number = 0
    for byte in value:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers or (value and value[-1] & 0x80):
        raise BadDer("invalid object identifier")
    head = min(numbers[0] // 40, 2)
    return ".".join(map(str, (head, numbers[0] - 40 * head, *numbers[1:])))
