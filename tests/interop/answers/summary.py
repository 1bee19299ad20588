"""How many exchanges of each API were alike, and the document that says so.

Owns: the text of `docs/answers.md`. Never: asks a broker.

    python -m tests.interop.answers.summary      plays everything and writes the document
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tests.interop.answers.compare import MISSING
from tests.interop.answers.differences import MEANT, MEANT_39, Meant, meant
from tests.interop.answers.running import Exchange, is_text

DOCUMENT: Final = Path(__file__).resolve().parents[3] / "docs" / "answers.md"
KINDS: Final = ("identical", "other words", "listed")
_HEAD: Final = """# Answer for answer

The same requests are sent to Apache Kafka and to Ottla, and the replies are compared field by
field: every API and version that Ottla offers, with ordinary, odd and wrong input. The replies
are held against those of Apache Kafka {kafka}, and against those of 3.9 for what 4.x removed.

An exchange is one request with both replies; those that only prepare a scenario are compared but
not counted. It is *identical* when all fields are equal, error messages included, after values
that each broker makes up (ids, ports, times) have been replaced. Arrays whose elements have names
are compared by name, since their order is no promise of the protocol. A read that differs, or an
error that passes by itself, is asked again for up to 3 s, and the last replies count. An exchange
has *other words* when only the text of an error message differs: ours says more, or Kafka's speaks
of what is not here; a table below has all of them. It is *listed* when a field differs on purpose,
or is not mended yet; the list at the end gives the reasons.

Written by `python -m tests.interop.answers.summary`; `make interop` holds it to what it sees.

| API | exchanges | identical | other words | listed |
|---|---|---|---|---|
"""
HEAD_39: Final = "\n## With Apache Kafka 3.9\n"
_TEXT_39: Final = """
Apache Kafka 4.x has no requests between a controller and brokers on ZooKeeper. Those are sent to
Apache Kafka {kafka} and to Ottla, each on ZooKeeper and with an authorizer: from a user without
ClusterAction, and from a super user with stale epochs, without partitions, and with partitions that
the broker does not have or whose leaders it knows.

| API | exchanges | identical | other words | listed |
|---|---|---|---|---|
"""


def kind_of(exchange: Exchange) -> str:
    """How alike both replies were; `unlisted` when nothing explains a difference."""
    fields = [one for one in exchange.different if not is_text(one)]
    if not fields:
        return "other words" if exchange.different else "identical"
    listed = all(meant(exchange.scenario, exchange.api, one) for one in fields)
    return "listed" if listed else "unlisted"


def counted(exchanges: Iterable[Exchange]) -> dict[str, Counter[str]]:
    """For each API how many exchanges there were of each kind; set-up is left out."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for exchange in exchanges:
        if not exchange.setup:
            counts[exchange.api][kind_of(exchange)] += 1
    return dict(counts)


def share_identical(counts: dict[str, Counter[str]]) -> float:
    """Of all exchanges, those in which no field differs."""
    total = sum(counts.values(), Counter[str]())
    return total["identical"] / total.total()


def share_alike(counts: dict[str, Counter[str]]) -> float:
    """Of all exchanges, those in which no field but an explanation differs."""
    total = sum(counts.values(), Counter[str]())
    return (total["identical"] + total["other words"]) / total.total()


def document(exchanges: Sequence[Exchange], kafka: str) -> str:
    counts = counted(exchanges)
    alike = (
        f"\n{share_identical(counts):.1%} are identical. In {share_alike(counts):.1%} no field but "
        "the text of an error message differs.\n"
    )
    listed = f"\n## Listed differences\n\n{_reasons(MEANT)}"
    return _HEAD.format(kafka=kafka) + _table(counts) + alike + _other_words(exchanges) + listed


def document_39(exchanges: Sequence[Exchange], kafka: str) -> str:
    """The section about what only Apache Kafka 3.9 has."""
    text = HEAD_39 + _TEXT_39.format(kafka=kafka) + _table(counted(exchanges))
    return f"{text}\n{_reasons(MEANT_39)}" if MEANT_39 else text


def _table(counts: dict[str, Counter[str]]) -> str:
    rows = [_row(api, counts[api]) for api in sorted(counts)]
    return "".join(rows) + _row("**all**", sum(counts.values(), Counter[str]()))


def _reasons(entries: Sequence[Meant]) -> str:
    rows = "".join(f"| {one.api} | `{one.path}` | {one.reason} |\n" for one in entries)
    return f"| API | field | reason |\n|---|---|---|\n{rows}"


def _other_words(exchanges: Sequence[Exchange]) -> str:
    """Both texts of every exchange in which nothing else differs, once each."""
    rows = {
        f"| {one.api} | {_cell(found.theirs)} | {_cell(found.ours)} |\n"
        for one in exchanges
        if not one.setup and kind_of(one) == "other words"
        for found in one.different
    }
    head = "\n## Other words\n\n| API | Apache Kafka | Ottla |\n|---|---|---|\n"
    return head + "".join(sorted(rows))


def _cell(text: object) -> str:
    """A text without the numbers in names that scenarios make up."""
    if text in (None, "", MISSING):
        return "(none)"
    return re.sub(r"\b([a-z]+)-\d+\b", r"\1-N", str(text)).replace("|", "\\|")


def _row(api: str, counts: Counter[str]) -> str:
    cells = " | ".join(str(counts[kind]) for kind in KINDS)
    return f"| {api} | {counts.total()} | {cells} |\n"


def main() -> None:
    import tempfile

    from tests.interop.answers.playing import playing, playing_39
    from tools import kafka_cache

    with tempfile.TemporaryDirectory() as folder, playing(Path(folder)) as answers:
        exchanges = answers.everything()
    with tempfile.TemporaryDirectory() as folder, playing_39(Path(folder)) as answers:
        exchanges_39 = answers.everything()
    DOCUMENT.write_text(
        document(exchanges, kafka_cache.KAFKA) + document_39(exchanges_39, kafka_cache.KAFKA_3)
    )


if __name__ == "__main__":
    main()
