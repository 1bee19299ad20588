"""Which items of the inventory have a test: `docs/coverage.md`, made from the `spec` marks.

Owns: the page. Reads the ids and their meaning from `docs/spec-ids.md`, the tests from their
`@pytest.mark.spec("LOG-07")` marks, and from `docs/spec-notes.txt` the reasons of items that are
deliberately not built, not built yet, or built otherwise.
Never: runs a test; the marks are read from the source, so the page takes no time to make.

A note `... shown by LOG-05, LOG-06` must name items that have tests; a note `open: ...` leaves its
item open.

`--check` changes nothing and fails when the page is not what it would write, when a mark or note
names an unknown id, when a note points to an item without a test, or when an item that is due has
neither a test nor a reason.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = "docs/coverage.md"
HEADING: Final = re.compile(r"^## (.+)$")
ITEM: Final = re.compile(r"^- \*\*([A-Z]+-\d+)\*\* (.+)$")
MARKS: Final = frozenset({"pytest.mark.spec", "spec"})  # the latter in tables
SHOWN_BY: Final = "shown by "
OPEN: Final = "open: "
ID: Final = re.compile(r"\b[A-Z]+-\d+\b")
NOTE: Final = re.compile(r"^([A-Z]+)-(\*|\d+)(?:\.\.(\d+))?: (.+)$")


class Item(NamedTuple):
    id: str
    area: str
    text: str


class Evidence(NamedTuple):
    """What is known of the items: test files by id, reasons by id or by whole area (`GRP-*`)."""

    tests: Mapping[str, Sequence[str]]
    notes: Mapping[str, str]

    def reason(self, item: str) -> str:
        return self.notes.get(item) or self.notes.get(re.sub(r"\d+$", "*", item), "")

    def is_open(self, item: str) -> bool:
        reason = self.reason(item)
        return item not in self.tests and (not reason or reason.startswith(OPEN))


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    items = list(read_items((root / "docs/spec-ids.md").read_text()))
    evidence = Evidence(
        marks((path.relative_to(root).as_posix(), path.read_text()) for path in tests(root)),
        read_notes((root / "docs/spec-notes.txt").read_text()),
    )
    faults = list(unknown(items, evidence))
    made = page(items, evidence)
    if "--check" not in arguments:
        (root / PAGE).write_text(made)
    elif (root / PAGE).read_text() != made:
        faults.append(f"{PAGE} is out of date: run make coverage")
    for fault in faults:
        print(f"coverage: {fault}", file=sys.stderr)
    shown = sum(item.id in evidence.tests for item in items)
    print(f"coverage: {shown} of {len(items)} items have a test")
    return 1 if faults else 0


def tests(root: Path) -> list[Path]:
    return sorted((root / "tests").rglob("test_*.py"))


def read_items(text: str) -> Iterator[Item]:
    area = ""
    for line in text.splitlines():
        if heading := HEADING.match(line):
            area = heading[1]
        elif item := ITEM.match(line):
            yield Item(item[1], area, item[2])


def read_notes(text: str) -> dict[str, str]:
    """`AREA-07: reason`, `AREA-07..12: reason` or, for what nothing else explains, `AREA-*`."""
    notes: dict[str, str] = {}
    for note in filter(None, map(NOTE.match, text.splitlines())):
        area, first, last, reason = note.groups()
        if first == "*":
            notes[f"{area}-*"] = reason
            continue
        for number in range(int(first), int(last or first) + 1):
            notes[f"{area}-{number:0{len(first)}}"] = reason
    return notes


def marks(sources: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    """The test files that carry each id, in order, each once."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path, source in sources:
        if "spec(" not in source:
            continue
        for item in sorted(set(marked(ast.parse(source)))):
            found[item].append(path)
    return dict(found)


def marked(tree: ast.Module) -> Iterator[str]:
    """Ids are literals, so that a search for one finds its tests."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in MARKS:
            for argument in node.args:
                if isinstance(argument, ast.Constant):
                    yield str(argument.value)


def unknown(items: Sequence[Item], evidence: Evidence) -> Iterator[str]:
    ids = {item.id for item in items}
    areas = {re.sub(r"\d+$", "*", item) for item in ids}
    for marked_id, files in evidence.tests.items():
        if marked_id not in ids:
            yield f"{files[0]} marks {marked_id}, which docs/spec-ids.md does not have"
    for noted in evidence.notes:
        if noted not in ids | areas:
            yield f"docs/spec-notes.txt has {noted}, which docs/spec-ids.md does not have"
    for noted, reason in evidence.notes.items():
        _, _, pointed = reason.partition(SHOWN_BY)
        for other in ID.findall(pointed):
            if other not in evidence.tests:
                yield f"docs/spec-notes.txt: {noted} points to {other}, which no test shows"
    for item in items:
        if item.id not in evidence.tests and not evidence.reason(item.id):
            yield f"{item.id} has neither a test nor a reason: {item.text}"


def page(items: Sequence[Item], evidence: Evidence) -> str:
    areas: defaultdict[str, list[Item]] = defaultdict(list)
    for item in items:
        areas[item.area].append(item)
    return "\n".join([*summary(areas, evidence), *details(areas, evidence), ""])


def summary(areas: Mapping[str, Sequence[Item]], evidence: Evidence) -> Iterator[str]:
    yield "# Coverage of the inventory"
    yield ""
    yield "Generated by `make coverage` from the `spec` marks of the tests; do not edit. What each"
    yield "id means is in [spec-ids.md](spec-ids.md), reasons come from `docs/spec-notes.txt`."
    yield ""
    yield "| area | items | with a test | with a reason | open |"
    yield "|---|---|---|---|---|"
    for area, items in areas.items():
        shown = sum(item.id in evidence.tests for item in items)
        open_ = [item for item in items if evidence.is_open(item.id)]
        reasons = len(items) - shown - len(open_)
        yield f"| {area} | {len(items)} | {shown} | {reasons} | {len(open_)} |"


def details(areas: Mapping[str, Sequence[Item]], evidence: Evidence) -> Iterator[str]:
    for area, items in areas.items():
        yield f"\n## {area}\n"
        yield "| id | shown by, or reason |"
        yield "|---|---|"
        for item in items:
            files = [path.removeprefix("tests/") for path in evidence.tests.get(item.id, [])]
            cells = [", ".join(f"`{path}`" for path in files), evidence.reason(item.id)]
            if files and item.id not in evidence.notes:  # a whole area's reason is for the rest
                cells = cells[:1]
            yield f"| {item.id} | {'; '.join(filter(None, cells)) or 'open'} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
