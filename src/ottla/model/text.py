"""Text that others chose, such as the name of a client, made safe to show."""

from __future__ import annotations


def printable(text: str) -> str:
    """The same on one line, without codes that a terminal obeys."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
