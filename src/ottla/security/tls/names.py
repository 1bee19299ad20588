"""Distinguished names as Java writes them, and the rules that map them to principals. Pure.

Owns: the RFC 2253 form of `javax.security.auth.x500.X500Principal`, so that ACLs and
`ssl.principal.mapping.rules` made for Kafka match here, and the syntax of these rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from ottla.model.errors import UserError
from ottla.security.tls.der import OBJECT_ID, SEQUENCE, SET, BadDer, Element, first, object_id

UTC_TIME: Final = 0x17
RULES: Final = "ssl.principal.mapping.rules"
_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_TEXT: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""Kinds of text whose bytes Java reads as UTF-8, even of those that are not; others are in hex."""
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_OUTER: Final = re.compile(r"\A[ \r]+|[ \r]+\Z")
_RULE: Final = re.compile(
    r"\s*(?:DEFAULT|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:[,\n]|$)"
)
_SEPARATORS: Final = re.compile(r"[\s,]*")
_GROUP: Final = re.compile(r"\\(.)|\$(?:(\d)|\{(\w+)\})?", re.DOTALL)


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate in DER, such as CN=alice,O=Example."""
    return distinguished_name(_fields(certificate)[3])


def expiry_of(certificate: bytes) -> int:
    """When a certificate in DER expires, in seconds since 1970."""
    not_after = _fields(certificate)[2].parts()[1]
    digits = not_after.value.decode("ascii", "replace").removesuffix("Z")
    if not_after.tag == UTC_TIME:
        digits = ("19" if digits[:2] >= "50" else "20") + digits
    try:
        moment = datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise BadDer("the certificate has no valid end of its validity") from None
    return int(moment.timestamp())


def _fields(certificate: bytes) -> list[Element]:
    """Algorithm, issuer, validity, subject, and what follows."""
    parts = first(certificate).expect(SEQUENCE).parts()
    fields = parts[0].expect(SEQUENCE).parts()
    sequences = [field for field in fields if field.tag == SEQUENCE]
    if len(sequences) < 4 or len(sequences[2].parts()) < 2:
        raise BadDer("the certificate has no validity or subject")
    return sequences


def distinguished_name(name: Element) -> str:
    """The relative names from the last to the first, joined by commas."""
    relative = [
        "+".join(_attribute(attribute) for attribute in element.expect(SET).parts())
        for element in name.parts()
    ]
    return ",".join(reversed(relative))


def _attribute(attribute: Element) -> str:
    kind, value = attribute.expect(SEQUENCE).parts()
    identifier = object_id(kind.expect(OBJECT_ID).value)
    keyword = _KEYWORDS.get(identifier)
    if keyword is None or value.tag not in _TEXT:
        return f"{keyword or identifier}=#{value.whole.hex()}"
    return f"{keyword}={_escape(value.value.decode('utf-8', 'replace'))}"


def _escape(text: str) -> str:
    escaped = "".join(f"\\{c}" if c in _ESCAPED else c for c in text).replace("\0", "\\00")
    return _OUTER.sub(lambda outer: "".join(f"\\{c}" for c in outer[0]), escaped)


class Rule(NamedTuple):
    """One rule; no pattern: the name as it is."""

    pattern: str | None = None
    replacement: str = ""
    letters: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        import re2

        if re2.fullmatch(self.pattern, name) is None:
            return None
        # As Kafka: a rule for the whole name then replaces every match in it.
        mapped: str = re2.sub(self.pattern, self._replaced, name)
        return {"L": mapped.lower(), "U": mapped.upper()}.get(self.letters, mapped)

    def _replaced(self, match: re.Match[str]) -> str:
        """Java's `$1`, `${name}` and escapes; Kafka takes a group that there is not for text."""

        def group(part: re.Match[str]) -> str:
            escaped, number, name = part.groups()
            if escaped is not None:
                return str(escaped)
            if number is not None and int(number) > match.re.groups:
                return part[0]
            return match.group(int(number) if name is None else name) or ""

        return _GROUP.sub(group, self.replacement)


def parse_rules(text: str) -> tuple[Rule, ...]:
    """The rules of `ssl.principal.mapping.rules`; a UserError names what is wrong."""
    rules: list[Rule] = []
    text = text.strip()
    position = _end_of_separators(text, 0)
    while position < len(text):
        match = _RULE.match(text, position)
        if match is None:
            raise UserError(
                f"{RULES}={text!r}: expected DEFAULT or RULE:pattern/replacement/[LU] at "
                f"position {position}"
            )
        rules.append(_rule(match))
        position = _end_of_separators(text, match.end())
    return tuple(rules)


def _end_of_separators(text: str, position: int) -> int:
    match = _SEPARATORS.match(text, position)
    assert match is not None  # the pattern takes any text
    return match.end()


def _rule(match: re.Match[str]) -> Rule:
    if match[1] is None:
        return Rule()
    import re2  # only where rules are set: it takes a while to load

    try:
        compiled = re2.compile(match[1])
    except re2.error as error:
        raise UserError(f"{RULES}: invalid pattern {match[1]!r}: {error}") from None
    for escaped, number, name in _GROUP.findall(match[2]):
        if not (escaped or number or name in compiled.groupindex):
            raise UserError(f"{RULES}: {match[2]!r}: expected a group of the pattern after '$'")
    return Rule(match[1], match[2], match[3])


def principal_name(rules: Sequence[Rule], name: str) -> str | None:
    """What the first rule that matches makes of a distinguished name; None: no rule matches."""
    for rule in rules:
        mapped = rule.apply(name)
        if mapped is not None:
            return mapped
    return None
