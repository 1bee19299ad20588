"""The table of cells: every client by every mechanism, with a login and with each fault.

Owns: which cells there are, and what a client cannot do. Never connects to anything.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

OUTCOMES: Final = Path(__file__).parent / "outcomes.json"

TLS, MTLS, PLAIN = "TLS", "mTLS", "PLAIN"
SCRAM_256, SCRAM_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
BEARER, KERBEROS, TOKEN = "OAUTHBEARER", "GSSAPI", "delegation token"

LOGIN: Final = "login"
WRONG_PASSWORD, UNKNOWN_USER = "wrong password", "unknown user"
UNTRUSTED, EXPIRED_CERTIFICATE = "untrusted certificate", "expired certificate"
NO_CERTIFICATE, WRONG_HOST = "no certificate", "wrong host name"
EXPIRED_TOKEN, NO_RULE = "expired token", "missing rule"

FAULTS: Final[Mapping[str, tuple[str, ...]]] = {
    TLS: (UNTRUSTED, EXPIRED_CERTIFICATE, WRONG_HOST, NO_RULE),
    MTLS: (NO_CERTIFICATE, UNTRUSTED, EXPIRED_CERTIFICATE, NO_RULE),
    PLAIN: (WRONG_PASSWORD, UNKNOWN_USER, NO_RULE),
    SCRAM_256: (WRONG_PASSWORD, UNKNOWN_USER, NO_RULE),
    SCRAM_512: (WRONG_PASSWORD, UNKNOWN_USER, NO_RULE),
    BEARER: (EXPIRED_TOKEN, NO_RULE),
    KERBEROS: (NO_RULE,),
    TOKEN: (WRONG_PASSWORD, UNKNOWN_USER, EXPIRED_TOKEN, NO_RULE),
}
"""By mechanism. Certificates: with TLS the broker's, with mTLS the client's. A wrong key or an
unknown principal of Kerberos is refused by the KDC, before a client reaches the broker."""

_NO_TOKENS: Final = "it cannot send the SCRAM extension `tokenauth`"
_GSSAPI_BY_KCAT: Final = "its wheels are built without Cyrus SASL; kcat, the same library, shows it"
_OTHER_COLUMN: Final = "confluent-kafka, the same library, shows it"

CANNOT: Final[Mapping[str, Mapping[str, str]]] = {
    "confluent-kafka": {KERBEROS: _GSSAPI_BY_KCAT, TOKEN: _NO_TOKENS},
    "kcat": {
        **dict.fromkeys((TLS, MTLS, PLAIN, SCRAM_256, SCRAM_512, BEARER), _OTHER_COLUMN),
        TOKEN: _NO_TOKENS,
    },
    "kafka-python": {TOKEN: _NO_TOKENS},
    "aiokafka": {TOKEN: _NO_TOKENS},
    "java-3.9": {},
    "java-4": {},
    "spark-connector": {},
    "ottla": {},
    "ottla.aio": {},
}
"""By client: the mechanisms it has no cell for, and why."""
SPARK: Final = "spark-connector"


class Cell(NamedTuple):
    client: str
    mechanism: str
    fault: str = LOGIN

    def __str__(self) -> str:
        return f"{self.client}, {self.mechanism}: {self.fault}"


class Outcome(NamedTuple):
    """`ok`, or what the client raised."""

    produce: str
    consume: str

    def __str__(self) -> str:
        return f"produce: {self.produce}, consume: {self.consume}"


DONE: Final = Outcome("ok", "ok")
NO_EXCEPTION: Final = "no exception in 30 s"


class Difference(NamedTuple):
    """What a client gets from Ottla instead, and why."""

    outcome: Outcome
    reason: str


DIFFERENT: Final[Mapping[Cell, Difference]] = {
    Cell("aiokafka", BEARER, EXPIRED_TOKEN): Difference(
        Outcome("KafkaConnectionError", "KafkaConnectionError"),
        "aiokafka goes on as if it was logged in. Apache Kafka answers its next request with an "
        "empty reply, after which aiokafka waits for ever; Ottla closes the connection",
    )
}
"""The cells with another outcome than from Apache Kafka."""


class Access(NamedTuple):
    """Where a client connects, and what it shows; a client uses what it has a setting for."""

    bootstrap: str
    protocol: str
    authority: Path
    certificate: Path | None = None  # with its key, as PEM
    mechanism: str | None = None  # of SASL
    user: str = ""
    password: str = ""
    is_token: bool = False
    bearer: Path | None = None  # the file of a token for OAUTHBEARER
    kerberos: str | None = None  # the JAAS line
    keytab: Path | None = None


class Job(NamedTuple):
    """One cell to do: write the value to a topic, and read from `open` as a member of a group."""

    cell: Cell
    access: Access
    topic: str
    group: str
    value: str


def cells(client: str) -> list[Cell]:
    return [
        Cell(client, mechanism, fault)
        for mechanism, faults in FAULTS.items()
        if mechanism not in CANNOT[client]
        for fault in (LOGIN, *faults)
    ]


def dealt(clients: Sequence[str]) -> frozenset[Cell]:
    """Every login and every refusal once, each client's turn in its order, and a login by each."""
    turns, chosen = deque(clients), set[Cell]()
    for mechanism, faults in FAULTS.items():
        for fault in (LOGIN, *faults):
            client = next(client for client in turns if mechanism not in CANNOT[client])
            turns.remove(client)
            turns.append(client)
            chosen.add(Cell(client, mechanism, fault))
    return frozenset(chosen | {cells(client)[0] for client in clients})


def expected(kind: str) -> dict[Cell, Outcome]:
    """From `ottla` or `kafka`."""
    differences = {cell: each.outcome for cell, each in DIFFERENT.items()}
    return recorded() | (differences if kind == "ottla" else {})


def recorded() -> dict[Cell, Outcome]:
    """What the clients got from Apache Kafka when `record` ran."""
    table = json.loads(OUTCOMES.read_text())
    return {
        Cell(client, mechanism, fault): Outcome(*outcome)
        for client, mechanisms in table.items()
        for mechanism, faults in mechanisms.items()
        for fault, outcome in faults.items()
    }
