"""Rules about names, folders and messages: the field's own words, and few enough files to see.

Owns: the list of dialect words, and the limits on folders, small modules and `Any`; that tests do
not import helpers from each other; which words name no value that is used over many lines.
Never: judges other names of local variables; reviewers do that.

A word is listed here because the field has a better one; `docs/glossary.md` has that word.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from tools.tidy import Fault, Module

FOLDER_MODULES: Final = 25
SMALL_LINES: Final = 60
SMALL_MODULES: Final = 54  # may only fall
ANY_USES: Final = 62  # may only fall: `Any` is for decode boundaries, in named aliases
PARTICIPLES: Final = 74  # may only fall: functions are verbs or nouns, `merge` and not `merged`
ONE_FILE_EACH: Final = ("src/ottla/api", "src/ottla/cli")  # one file per API, one per command

DIALECT: Final = {  # word in a module, class or function name -> the field's word
    "asks": "pending requests",
    "care": "maintenance",
    "carrying": "executor",
    "census": "connection counts",
    "chores": "background tasks",
    "complaints": "error log",
    "door": "listener",
    "doors": "listeners",
    "doomed": "to be deleted",
    "errand": "callback",
    "errands": "callbacks",
    "face": "client, interface",
    "favour": "request, preference",
    "hungry": "needs data",
    "inbox": "frame reader",
    "journal": "internal topic log",
    "lasting": "durable, cached",
    "leftovers": "swap files",
    "noted": "change notifications",
    "office": "controller election",
    "shelf": "buffer pool",
    "strangers": "unauthenticated",
    "surroundings": "environment",
    "survivors": "retained records",
    "trail": "tracker",
    "wishes": "options",
    "wording": "codec",
    "world": "environment",
}
BARE_PARTICIPLES: Final = frozenset(
    [
        "asked",
        "answered",
        "begun",
        "buried",
        "came",
        "each",
        "found",
        "given",
        "gone",
        "heard",
        "held",
        "kept",
        "known",
        "made",
        "meant",
        "one",
        "placed",
        "said",
        "seen",
        "shown",
        "spelled",
        "taken",
        "told",
        "wanted",
        "wished",
    ]
)
VERBS_IN_ED: Final = frozenset({"embed", "feed", "need", "proceed", "seed", "shed", "succeed"})
VAGUE: Final = frozenset(
    {
        *("asked", "done", "each", "found", "given", "held", "it", "kept", "known", "left", "made"),
        *("named", "one", "seen", "sent", "taken", "told", "wanted"),
    }
)
"""Fine in a comprehension or a short loop; what lives longer is named by the noun it holds."""
VAGUE_LINES: Final = 15

PHRASES: Final = {  # in a log line or an error message -> what to write
    "nobody may use": "denying all access to",
    "no word from": "no reply from",
    "the broker ends": "broker stopped",
    "whoever": "name who",
    "is not a name": "invalid name",
    "left out": "ignored",
    "now reached at": "advertised listeners changed",
    "is there twice": "found more than once",
    "put aside": "renamed to",
    "begun anew": "truncated, started at",
}
ENDINGS: Final = ("ings", "ing", "ers", "er", "ors", "or", "ions", "ion", "es", "s", "e")
SPOKEN: Final = frozenset({"debug", "info", "warning", "error", "exception", "critical"})


def faults(modules: Sequence[Module]) -> list[Fault]:
    ours = [module for module in modules if module.path.startswith("src/ottla/")]
    return [
        *crowded_folders(ours),
        *twins(ours),
        *small_modules(ours),
        *untyped(ours),
        *participles(ours),
        *(fault for module in modules if module.is_test for fault in borrowed_helpers(module)),
        *(fault for module in ours for fault in dialect(module)),
        *(fault for module in ours for fault in phrases(module)),
        *(fault for module in ours for fault in vague_values(module)),
    ]


def crowded_folders(modules: Sequence[Module]) -> Iterator[Fault]:
    """A folder with more modules than this has an inner structure that wants to be folders."""
    counts = Counter(folder(module) for module in modules if not module.is_package)
    for path, count in counts.items():
        if count > FOLDER_MODULES and not path.startswith(ONE_FILE_EACH):
            text = f"{count} modules, more than {FOLDER_MODULES}: make sub-packages"
            yield Fault(path, 1, "crowded-folder", text)


def twins(modules: Sequence[Module]) -> Iterator[Fault]:
    """Two modules of one folder whose names differ in their ending alone cannot be told apart."""
    by_stem: dict[tuple[str, str], list[Module]] = defaultdict(list)
    for module in modules:
        if not module.is_package and not folder(module).startswith(ONE_FILE_EACH):
            by_stem[folder(module), root_of(stem(module))].append(module)
    for (_, _), alike in by_stem.items():
        if len(alike) > 1:
            names = " and ".join(stem(module) for module in alike)
            yield Fault(alike[0].path, 1, "twins", f"{names}: rename one of them")


def small_modules(modules: Sequence[Module]) -> Iterator[Fault]:
    """A small module that only one other uses belongs into that one; a few are fine."""
    small = [
        module
        for module in modules
        if len(module.lines) < SMALL_LINES
        and not module.is_package
        and not module.path.startswith("src/ottla/api/")
    ]
    if len(small) > SMALL_MODULES:
        text = f"{len(small)} modules under {SMALL_LINES} lines, more than {SMALL_MODULES}"
        yield Fault("src/ottla", 1, "small-modules", text)


def untyped(modules: Sequence[Module]) -> Iterator[Fault]:
    """`Any` switches the type checker off for everything that it touches."""
    uses = sum(
        isinstance(node, ast.Name) and node.id == "Any"
        for module in modules
        for node in module.of(ast.Name)
    )
    if uses > ANY_USES:
        text = f"{uses} uses of Any, more than {ANY_USES}: name the type, or an alias that exists"
        yield Fault("src/ottla", 1, "any", text)


def participles(modules: Sequence[Module]) -> Iterator[Fault]:
    """A participle alone names what a value is like: fine for a property, not for a function."""
    named = [
        f"{stem(module)}.{function.name}"
        for module in modules
        for function in module.functions()
        if is_participle(function)
    ]
    if len(named) > PARTICIPLES:
        text = f"{len(named)} functions are participles, more than {PARTICIPLES}: {named[-1]}"
        yield Fault("src/ottla", 1, "participles", text)


def is_participle(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    word = function.name.strip("_")
    marks = [ast.unparse(mark) for mark in function.decorator_list]
    return (
        word.endswith("ed")
        and "_" not in word
        and word not in VERBS_IN_ED
        and not any(mark.endswith("property") for mark in marks)
    )


def borrowed_helpers(module: Module) -> Iterator[Fault]:
    """What two tests need is in a helper module, named by the noun it provides."""
    for node in module.of(ast.Import, ast.ImportFrom):
        assert isinstance(node, ast.Import | ast.ImportFrom)
        imported = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):  # `from tests.log import test_a` imports a module too
            imported = [f"{node.module or ''}.{name}" for name in imported]
        for name in imported:
            if any(part.startswith("test_") for part in name.split(".")):
                text = f"imports {name}: move the helper into a module of its own"
                yield Fault(module.path, node.lineno, "borrowed-helper", text)


def dialect(module: Module) -> Iterator[Fault]:
    """Names of modules, classes and functions are words that the field uses."""
    named: list[tuple[int, str]] = [(1, stem(module))]
    named += [(owner.lineno, owner.name) for owner in module.classes()]
    named += [(function.lineno, function.name) for function in module.functions()]
    for line, name in named:
        words = words_of(name)
        for word in words:
            if word in DIALECT:
                yield Fault(module.path, line, "dialect", f"{name}: write {DIALECT[word]!r}")
        if len(words) == 1 and words[0] in BARE_PARTICIPLES:
            yield Fault(module.path, line, "dialect", f"{name}: say what it does or holds")


def phrases(module: Module) -> Iterator[Fault]:
    """Log lines and errors are read by people who never saw the source."""
    for node in module.of(ast.Call, ast.Raise):
        assert isinstance(node, ast.Call | ast.Raise)
        if isinstance(node, ast.Call) and not is_log_call(node):
            continue
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                for phrase, instead in PHRASES.items():
                    if phrase in part.value.lower():
                        text = f"{phrase!r} in a message: write {instead!r}"
                        yield Fault(module.path, part.lineno, "phrase", text)


def vague_values(module: Module) -> Iterator[Fault]:
    """Values of a function that are still used many lines after they were assigned."""
    for function in module.of(ast.FunctionDef, ast.AsyncFunctionDef):
        assigned: dict[str, int] = {}
        for line, _, name, is_assignment in sorted(_vague_names(function)):
            if is_assignment:
                assigned[name] = line
            elif line - assigned.get(name, line) > VAGUE_LINES:
                text = f"{name!r} lives for over {VAGUE_LINES} lines: name it by what it holds"
                yield Fault(module.path, assigned.pop(name), "vague", text)


def _vague_names(function: ast.AST) -> Iterator[tuple[int, int, str, bool]]:
    """Each use of a vague word as a name: line, column, word, whether it is assigned there."""
    added = {id(node.target) for node in ast.walk(function) if isinstance(node, ast.AugAssign)}
    for node in ast.walk(function):
        if isinstance(node, ast.arg) and node.arg in VAGUE:
            yield node.lineno, node.col_offset, node.arg, True
        elif isinstance(node, ast.Name) and node.id in VAGUE:
            is_assigned = isinstance(node.ctx, ast.Store) and id(node) not in added
            yield node.lineno, node.col_offset, node.id, is_assigned


def is_log_call(call: ast.Call) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr in SPOKEN
        and isinstance(function.value, ast.Name)
        and "log" in function.value.id.lower()
    )


def folder(module: Module) -> str:
    return str(PurePosixPath(module.path).parent)


def stem(module: Module) -> str:
    path = PurePosixPath(module.path)
    return path.parent.name if module.is_package else path.stem


def root_of(name: str) -> str:
    """`loader`, `loading` and `loads` have the root `load`."""
    for ending in ENDINGS:
        if name.endswith(ending) and len(name) - len(ending) >= 3:
            return name.removesuffix(ending)
    return name


def words_of(name: str) -> list[str]:
    """The words of `snake_case` and `CamelCase` names, in lower case."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [word.lower() for word in spaced.split("_") if word]
