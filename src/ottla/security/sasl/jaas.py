"""JAAS lines and files, for Kafka's own login modules only. Pure but for `read_section`.

Owns: the syntax, and which login module stands for which mechanism. Never loads a class: another
module is a `UserError`. Never puts a value into an error: it may be a password.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ottla.model.errors import UserError

FILE: Final = "java.security.auth.login.config"
_PACKAGE: Final = "org.apache.kafka.common.security."
MODULES: Final = {
    f"{_PACKAGE}plain.PlainLoginModule": "PLAIN",
    f"{_PACKAGE}scram.ScramLoginModule": "SCRAM",
    f"{_PACKAGE}oauthbearer.OAuthBearerLoginModule": "OAUTHBEARER",
    "com.sun.security.auth.module.Krb5LoginModule": "GSSAPI",
}
DIGEST_MODULE: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"
"""Of logins to ZooKeeper, in the section Client of a file."""
FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
FILE_MAX_BYTES: Final = 1 << 20
_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/|(?P<quoted>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
    r"""|(?P<mark>[{};=])|(?P<word>[^\s{};="']+)""",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


class Entry(NamedTuple):
    """One login module: the mechanism it is for, and its options."""

    mechanism: str
    """The module itself if it is none of Kafka's."""
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Entry({self.mechanism}, [hidden])"

    def serves(self, mechanism: str) -> bool:
        return mechanism == self.mechanism or mechanism.startswith(f"{self.mechanism}-")

    @property
    def users(self) -> dict[str, str]:
        """Passwords by user, from options such as user_alice."""
        return {
            name.removeprefix("user_"): value
            for name, value in self.options.items()
            if name.startswith("user_")
        }


def parse_line(text: str, name: str = "sasl.jaas.config") -> tuple[Entry, ...]:
    """The login modules of a setting, usually one."""
    tokens = _Tokens(text, name)
    entries = []
    while not tokens.at_end:
        entries.append(_entry(tokens))
    if not entries:
        raise UserError(f"{name}: expected a login module and its options, ending in ';'")
    return _check(entries, MODULES, name)


def parse_sections(text: str, name: str = FILE) -> dict[str, tuple[Entry, ...]]:
    """The sections of a file by name, such as KafkaServer."""
    tokens = _Tokens(text, name)
    sections: dict[str, tuple[Entry, ...]] = {}
    while not tokens.at_end:
        section = tokens.word("the name of a section")
        tokens.mark("{")
        entries = []
        while not tokens.takes("}"):
            entries.append(_entry(tokens))
        tokens.mark(";")
        sections[section] = tuple(entries)
    return sections


def read_section(
    path: str, *names: str, modules: Sequence[str] = tuple(MODULES)
) -> tuple[Entry, ...]:
    """The first of these sections of a file; other sections may be for other programs."""
    sections = _read_file(path)
    found = next((name for name in names if name in sections), None)
    if found is None:
        return ()
    return _check(sections[found], modules, f"{FILE}={path}: section {found}")


def _read_file(path: str) -> dict[str, tuple[Entry, ...]]:
    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(FILE_MAX_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise UserError(f"{FILE}={path}: {reason}") from None
    return parse_sections(text, f"{FILE}={path}")


def find(entries: Sequence[Entry], mechanism: str) -> Entry | None:
    return next((entry for entry in entries if entry.serves(mechanism)), None)


def _entry(tokens: _Tokens) -> Entry:
    module = tokens.word("a login module")
    flag = tokens.word("required, requisite, sufficient or optional")
    if flag.lower() not in FLAGS:
        raise UserError(f"{tokens.name}: expected required after the login module")
    options: dict[str, str] = {}
    while not tokens.takes(";"):
        key = tokens.word("an option or ';'")
        tokens.mark("=")
        options[key] = tokens.value()
    return Entry(MODULES.get(module, module), options)


def _check(entries: Sequence[Entry], modules: Collection[str], name: str) -> tuple[Entry, ...]:
    """UserError for a login module that is not among these."""
    allowed = {MODULES.get(module, module) for module in modules}
    for entry in entries:
        if entry.mechanism not in allowed:
            raise UserError(
                f"{name}: unsupported login module {entry.mechanism[:200]!r}; expected one of "
                f"{', '.join(modules)}"
            )
    return tuple(entries)


class _Tokens:
    """The words of a text; an error says what was expected, not what was found."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise UserError(f"{name}: a quoted value is not closed")
            if match.lastgroup is not None:
                self._tokens.append((match.lastgroup, match[0]))
            at = match.end()
        self._tokens.reverse()

    @property
    def at_end(self) -> bool:
        return not self._tokens

    def takes(self, mark: str) -> bool:
        if self._tokens and self._tokens[-1] == ("mark", mark):
            self._tokens.pop()
            return True
        return False

    def mark(self, mark: str) -> None:
        if not self.takes(mark):
            raise UserError(f"{self.name}: expected '{mark}'")

    def word(self, expected: str) -> str:
        if not self._tokens or self._tokens[-1][0] != "word":
            raise UserError(f"{self.name}: expected {expected}")
        return self._tokens.pop()[1]

    def value(self) -> str:
        if not self._tokens or self._tokens[-1][0] == "mark":
            raise UserError(f"{self.name}: expected the value of an option")
        kind, text = self._tokens.pop()
        return _ESCAPE.sub(r"\1", text[1:-1]) if kind == "quoted" else text
