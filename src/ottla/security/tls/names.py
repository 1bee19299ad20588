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
_TEXT: Final = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1E: "utf-16-be"}
_ESCAPED: Final = frozenset(',+<>;"\\')
_RULE: Final = re.compile(r"DEFAULT|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)")
_GROUP: Final = re.compile(r"\$(\d)")


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
    keyword, encoding = _KEYWORDS.get(identifier), _TEXT.get(value.tag)
    if keyword is None or encoding is None:
        return f"{keyword or identifier}=#{value.whole.hex()}"
    try:
        return f"{keyword}={_escaped(value.value.decode(encoding))}"
    except UnicodeDecodeError:
        raise BadDer(f"the value of {keyword} is not {encoding}") from None


def _escaped(text: str) -> str:
    characters = [f"\\{c}" if c in _ESCAPED else c for c in text]
    if text[:1] in ("#", " "):
        characters[0] = f"\\{text[0]}"
    if len(text) > 1 and text[-1] == " ":
        characters[-1] = "\\ "
    return "".join(characters)


class Rule(NamedTuple):
    """One rule; no pattern: the name as it is."""

    pattern: str | None = None
    replacement: str = ""
    letters: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        import re2

        match = re2.fullmatch(self.pattern, name)
        if match is None:
            return None
        mapped = _GROUP.sub(lambda group: match.group(int(group[1])) or "", self.replacement)
        return {"L": mapped.lower(), "U": mapped.upper()}.get(self.letters, mapped)


def parse_rules(text: str) -> tuple[Rule, ...]:
    """The rules of `ssl.principal.mapping.rules`; a UserError names what is wrong."""
    rules: list[Rule] = []
    position = 0
    text = text.strip()
    while position < len(text):
        match = _RULE.match(text, position)
        if match is None:
            raise UserError(
                f"{RULES}={text!r}: expected DEFAULT or RULE:pattern/replacement/[LU] at "
                f"position {position}"
            )
        rules.append(_rule(match))
        position = match.end()
        while position < len(text) and text[position] in ", \t\n":
            position += 1
    return tuple(rules) or (Rule(),)


def _rule(match: re.Match[str]) -> Rule:
    if match[0] == "DEFAULT":
        return Rule()
    import re2  # only where rules are set: it takes a while to load

    try:
        compiled = re2.compile(match[1])
    except re2.error as error:
        raise UserError(f"{RULES}: invalid pattern {match[1]!r}: {error}") from None
    highest = max((int(number) for number in _GROUP.findall(match[2])), default=0)
    if highest > compiled.groups:
        raise UserError(f"{RULES}: {match[2]!r} names group {highest}, which the pattern lacks")
    return Rule(match[1], match[2], match[3])


def principal_name(rules: Sequence[Rule], name: str) -> str | None:
    """What the first rule that matches makes of a distinguished name; None: no rule matches."""
    for rule in rules:
        mapped = rule.apply(name)
        if mapped is not None:
            return mapped
    return None
