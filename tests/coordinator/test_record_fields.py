"""Fields of persisted records: what is written is read, and garbage is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordinator.record_fields import Reader, Writer


@given(
    st.booleans(),
    st.text(max_size=300) | st.none(),
    st.binary(max_size=300) | st.none(),
    st.integers(-(2**63), 2**63 - 1),
)
def test_fields_read_as_they_were_written(
    flexible: bool, text: str | None, blob: bytes | None, number: int
) -> None:
    out = Writer(7, flexible=flexible).string(text).blob(blob).int64(number).int8(-3).int16(-4)
    out.int32(-5).array(2).raw(b"ab").tags()
    reader = Reader(out.done(), flexible_from=0 if flexible else 100)
    assert (reader.version, reader.string(), reader.blob(), reader.int64()) == (
        7,
        text,
        blob,
        number,
    )
    assert (reader.int8(), reader.int16(), reader.int32()) == (-3, -4, -5)
    assert (reader.array(), reader.raw(2)) == (2, b"ab")
    reader.tags()


def test_tags_that_are_not_known_are_skipped() -> None:
    reader = Reader(b"\0\4" + b"\2" + b"\0\3abc" + b"\1\1x" + b"\0\0\0\7", flexible_from=4)
    reader.tags()
    assert reader.int32() == 7


@given(st.binary(max_size=60))
def test_garbage_is_a_value_error_and_nothing_else(data: bytes) -> None:
    try:
        reader = Reader(data, flexible_from=2)
        for _ in range(reader.array()):
            reader.text()
        reader.blob()
        reader.tags()
    except ValueError:
        return


@pytest.mark.parametrize("length", [b"\x7f\xff\xff\xff", b"\x00\x00\x00\x10"])
def test_an_array_cannot_be_longer_than_what_is_left(length: bytes) -> None:
    with pytest.raises(ValueError, match="exceeds the record"):
        Reader(b"\0\1" + length).array()


def test_tagged_fields_read_as_they_were_written() -> None:
    inside = Writer(None, flexible=True).string("x").int32(7).tags().done()
    written = Writer(0, flexible=True).int8(1).tags({3: inside, 0: b"y"}).done()
    reader = Reader(written, flexible_from=0)
    assert reader.int8() == 1
    tagged = reader.tags()
    assert list(tagged) == [0, 3], "in the order of their tags"
    nested = Reader.inside(tagged[3])
    assert (nested.string(), nested.int32(), nested.tags()) == ("x", 7, {})


@pytest.mark.parametrize("flexible", [True, False])
@pytest.mark.parametrize(
    "values", [[], [""], ["a", "\N{SNOWMAN}", "b" * 126], ["a", "b" * 127, "c" * 300]]
)
def test_many_strings_are_written_as_one_after_another(values: list[str], flexible: bool) -> None:
    apart = Writer(None, flexible=flexible).array(len(values))
    for value in values:
        apart.string(value)
    assert Writer(None, flexible=flexible).strings(values).done() == apart.done()
