"""How `kafka-console-producer.sh` makes records of lines, by its reader's properties.

Pure. `parse.key`, `parse.headers`, their separators and `null.marker` mean what they mean there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Final, NamedTuple

from ottla.cli.records.parsing import Headers, ParsedRecord
from ottla.model.errors import UserError

TRUE: Final = "true"


class LineReader(NamedTuple):
    """The reader's properties."""

    parse_key: bool = False
    parse_headers: bool = False
    key_separator: str = "\t"
    headers_delimiter: str = "\t"
    headers_separator: str = ","
    headers_key_separator: str = ":"
    null_marker: str | None = None
    ignore_error: bool = False

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> LineReader:
        """From the properties as they are given; those that are not known mean nothing, as there.

        Separators must differ where one stands inside the other.
        """
        values: dict[str, object] = {}
        for name in cls._fields:
            text_given = properties.get(name.replace("_", "."))
            if text_given is not None:
                flag = name in ("parse_key", "parse_headers", "ignore_error")
                values[name] = text_given.strip().lower() == TRUE if flag else text_given
        reader = cls(**values)  # type: ignore[arg-type]
        reader._check()
        return reader

    def _check(self) -> None:
        inside = ("headers_delimiter", "headers_separator", "headers_key_separator")
        marked = ("null_marker", "key_separator", *inside)
        for one, other in [*combinations(inside, 2), *((marked[0], each) for each in marked[1:])]:
            if getattr(self, one) == getattr(self, other):
                names = f"{one.replace('_', '.')} and {other.replace('_', '.')}"
                raise UserError(f"{names} may not be equal")

    def drafts(self, lines: Iterable[bytes]) -> Iterator[ParsedRecord]:
        """A record for each line; the last one need not be ended."""
        for number, line in enumerate(lines, 1):
            yield self.draft(line.decode(errors="surrogateescape").rstrip("\r\n"), number)

    def draft(self, line: str, number: int) -> ParsedRecord:
        headers: str | None = None
        key: str | None = None
        rest = line
        if self.parse_headers:
            headers, rest = self._cut(rest, self.headers_delimiter, "headers delimiter", number)
        if self.parse_key:
            key, rest = self._cut(rest, self.key_separator, "key separator", number)
        return ParsedRecord(self._bytes(rest), self._bytes(key), self._headers(headers, number))

    def _cut(self, text: str, at: str, what: str, number: int) -> tuple[str | None, str]:
        before, found, after = text.partition(at)
        if found:
            return before, after
        if self.ignore_error:
            return None, text
        raise UserError(f"No {what} found on line number {number}: '{text}'")

    def _headers(self, text: str | None, number: int) -> Headers:
        if text is None or text == self.null_marker:
            return ()
        pairs = []
        for pair in text.split(self.headers_separator):
            name, separator, value = pair.partition(self.headers_key_separator)
            if not separator and not self.ignore_error:
                raise UserError(
                    f"No header key separator found in pair '{pair}' on line number {number}"
                )
            pairs.append((name, self._bytes(value) if separator else None))
        return tuple(pairs)

    def _bytes(self, text: str | None) -> bytes | None:
        if text is None or text == self.null_marker:
            return None
        return text.encode(errors="surrogateescape")
