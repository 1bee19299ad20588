"""The rules that need the whole tree: what is listed, imported, mapped and linked.

Owns: rules over all modules and documents together. Rules about one file are in `tidy`.
Never: reads outside the root it is given.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from tools.tidy import Fault, Module

DOTTED: Final = re.compile(r"\bottla(?:\.\w+)+")
CODE_SPAN: Final = re.compile(r"`([^`\n]+)`")
LINK: Final = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
PATH_LIKE: Final = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")
WORDS: Final = {"docs/benchmarks.md": 1_500, "docs/reliability.md": 1_500}
"""Method and the latest figures, no more: older runs are data, in `docs/history`."""
FENCE: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def faults(root: Path, modules: Sequence[Module]) -> list[Fault]:
    ours = [module for module in modules if module.path.startswith("src/ottla/")]
    entry_points = (root / "pyproject.toml").read_text()
    return [
        *unlisted_apis(ours),
        *never_imported(ours, modules, entry_points),
        *unmapped(ours),
        *broken_links(root),
        *broken_paths(root),
        *long_documents(root),
    ]


def long_documents(root: Path) -> Iterator[Fault]:
    """Pages of measurements grow with each run unless somebody counts."""
    for path, most in WORDS.items():
        file = root / path
        words = len(file.read_text(encoding="utf-8").split()) if file.exists() else 0
        if words > most:
            text = f"{words} words, more than {most}: move older figures to docs/history"
            yield Fault(path, 1, "document-length", text)


def unlisted_apis(modules: Sequence[Module]) -> Iterator[Fault]:
    """A file that declares an API is named in `api/__init__.py`: one list, the rest derived."""
    listing = next((m.source for m in modules if m.path == "src/ottla/api/__init__.py"), "")
    for module in modules:
        stem = PurePosixPath(module.path).stem
        if declares_api(module) and not re.search(rf"\b{stem}\b", listing):
            yield Fault(module.path, 1, "unlisted-api", "not listed in api/__init__.py")


def declares_api(module: Module) -> bool:
    if not module.path.startswith("src/ottla/api/"):
        return False
    targets = (
        target
        for node in module.tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    )
    return any(isinstance(target, ast.Name) and target.id == "API" for target in targets)


def never_imported(
    modules: Sequence[Module], users: Sequence[Module], entry_points: str
) -> Iterator[Fault]:
    """A module that nobody imports, but itself and its own test, is dead or forgotten."""
    used = set(DOTTED.findall(entry_points))
    for user in users:
        stem = PurePosixPath(user.path).stem
        own = stem.removeprefix("test_") if stem.startswith("test_") else None
        used.update(
            name
            for name in imports(user)
            if name.rpartition(".")[2] != own and name != dotted(user)
        )
    for module in modules:
        is_entry = module.is_package or module.path.endswith("/__main__.py")
        if not is_entry and dotted(module) not in used:
            yield Fault(module.path, 1, "never-imported", "no module imports it")


def imports(module: Module) -> Iterator[str]:
    """Every dotted name of ours that a module imports, or names in a string to import later."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(module=str(base)):
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)
            case ast.Constant(value=str(text)) if text.startswith("ottla."):
                yield text.partition(":")[0]


def dotted(module: Module) -> str:
    name = module.path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__")
    return name.replace("/", ".")


def unmapped(modules: Sequence[Module]) -> Iterator[Fault]:
    """A package's docstring is the folder's map: it names every module (APIs are in the list)."""
    maps = {
        str(PurePosixPath(module.path).parent): ast.get_docstring(module.tree) or ""
        for module in modules
        if module.is_package
    }
    for module in modules:
        path = PurePosixPath(module.path)
        if module.is_package or declares_api(module) or str(path.parent) == "src/ottla":
            continue
        if not re.search(rf"\b{path.stem}\b", maps.get(str(path.parent), "")):
            text = f"{path.parent}/__init__.py does not say what it is for"
            yield Fault(module.path, 1, "unmapped", text)


def documents(root: Path) -> list[Path]:
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]


def broken_links(root: Path) -> Iterator[Fault]:
    """Every relative link of every document leads somewhere."""
    for document in documents(root):
        text = FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), document.read_text())
        for number, line in enumerate(text.splitlines(), 1):
            for target in LINK.findall(line):
                if "://" not in target and not (document.parent / target).exists():
                    path = document.relative_to(root).as_posix()
                    yield Fault(path, number, "broken-link", f"{target} does not exist")


def broken_paths(root: Path) -> Iterator[Fault]:
    """Every path that ARCHITECTURE.md names exists, in the root or in the package."""
    homes = (root, root / "src" / "ottla")
    for number, line in enumerate((root / "ARCHITECTURE.md").read_text().splitlines(), 1):
        for span in CODE_SPAN.findall(line):
            if "/" not in span or not PATH_LIKE.fullmatch(span):
                continue
            if not any((home / span).exists() for home in homes):
                yield Fault("ARCHITECTURE.md", number, "broken-path", f"{span} does not exist")
