"""What linters do not know: the project's own rules, checked over its own source.

Owns: the rules about single files. Rules that need the whole tree are in `tidy_tree`.
Never: changes a file. A rule that makes a piece of code worse is waived in `tools/waivers.txt`
with path, rule and reason; the waivers are counted, and one that waives nothing is a fault.

Prints the five largest modules and the five longest functions every time: size is lost in one
place at a time.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDERS: Final = ("src", "tests", "tools", "benchmarks")

MODULE_LINES: Final = 500
FUNCTION_LINES: Final = 50
POSITIONAL_PARAMETERS: Final = 5
PUBLIC_METHODS: Final = 12

CLOCK: Final = ("ottla/model/clock.py",)
FILES: Final = ("ottla/log/files.py",)
NOWHERE: Final = ()
BANNED: Final = {  # call, or all calls below it -> the only places that may use it
    "asyncio.create_task": NOWHERE,
    "asyncio.ensure_future": NOWHERE,
    "datetime.datetime.now": CLOCK,
    "datetime.datetime.utcnow": CLOCK,
    "mmap.mmap": (*FILES, "ottla/log/io_uring.py"),
    "multiprocessing.Lock": NOWHERE,
    "os.fdatasync": FILES,
    "os.fsync": FILES,
    "os.rename": FILES,
    "os.replace": FILES,
    "random": ("ottla/broker/app.py",),
    "socket": (
        "ottla/net/",
        "ottla/testing/",
        "ottla/broker/environment.py",
        "ottla/cli/cluster/local_cluster.py",
        "ottla/security/tls/authority.py",
        "ottla/cli/kafka/configs.py",  # looks up the address of an ip entity, as the tool does
        "ottla/cli/zookeeper/ensemble.py",
    ),
    "threading.Condition": NOWHERE,
    "threading.Lock": (
        "ottla/client/producer/buffer/queues.py",
        "ottla/log/directories/directory.py",
        "ottla/security/sasl/kerberos.py",
    ),  # callers' threads and the sender's; those that fetch tickets
    "threading.RLock": NOWHERE,
    "time": CLOCK,
    "uuid.uuid4": ("ottla/broker/app.py",),
}
BANNED_IN_TESTS: Final = {
    "time.sleep": (
        "tests/cluster/",
        "tests/interop/",
        "tests/spark/",
        "tests/soak/",
        "tests/cli/kafka/test_daemon.py",  # waits for another process, with a bound
    ),
    "unittest.mock": NOWHERE,
}
SAID_INSTEAD: Final = {
    "asyncio.create_task": "use a TaskGroup, so that the task has an owner",
    "asyncio.ensure_future": "use a TaskGroup, so that the task has an owner",
    "time": "take a Clock",
    "random": "take a random.Random",
    "time.sleep": "use virtual time, or wait for a condition",
    "unittest.mock": "use a fake of tests/fakes",
}
BANNED_MODULES: Final = frozenset({"utils", "util", "common", "helper", "helpers", "misc"})
BANNED_ENDINGS: Final = ("Manager", "Helper", "Util", "Utils", "Impl")
LEFT_OVERS: Final = tuple("".join(halves) for halves in (("FIX", "ME"), ("TO", "DO"), ("XX", "X")))


class Fault(NamedTuple):
    path: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text} [{self.rule}]"


@dataclass(frozen=True)
class Module:
    """One Python file, parsed once."""

    path: str  # as git names it, from the root
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @cached_property
    def lines(self) -> list[str]:
        return self.source.splitlines()

    @property
    def is_test(self) -> bool:
        return self.path.startswith("tests/")

    @property
    def is_package(self) -> bool:
        return self.path.endswith("/__init__.py")

    def of(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        return (node for node in ast.walk(self.tree) if isinstance(node, kinds))

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in self.of(ast.FunctionDef, ast.AsyncFunctionDef):
            assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            yield node

    def classes(self) -> Iterator[ast.ClassDef]:
        for node in self.of(ast.ClassDef):
            assert isinstance(node, ast.ClassDef)
            yield node


Rule = Callable[[Module], Iterator[Fault]]


def banned_calls(module: Module) -> Iterator[Fault]:
    """Time, dice, disk, sockets and tasks are used in the modules named for them, and no other."""
    banned = BANNED_IN_TESTS if module.is_test else BANNED
    if not module.is_test and not module.path.startswith("src/"):
        return
    aliases = imported_names(module.tree)
    for node in module.of(ast.Call):
        assert isinstance(node, ast.Call)
        called = full_name(node.func, aliases)
        for name, homes in banned.items():
            if called == name or called.startswith(name + "."):
                if called == "random.Random" or any(home in module.path for home in homes):
                    continue
                instead = SAID_INSTEAD.get(name) or f"belongs in {', '.join(homes) or 'nothing'}"
                yield Fault(module.path, node.lineno, "banned-call", f"{called}: {instead}")


def imported_names(tree: ast.Module) -> dict[str, str]:
    """What each imported name stands for: `from time import sleep as nap` -> nap: time.sleep."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def full_name(node: ast.expr, aliases: dict[str, str]) -> str:
    """The dotted name a call is made by, through imports; empty when it is made on a value."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in aliases:
        return ""
    return ".".join([aliases[node.id], *reversed(parts)])


def docstring(module: Module) -> Iterator[Fault]:
    """A module opens with what it owns, what it never does, and why it exists."""
    if not module.is_test and not ast.get_docstring(module.tree):
        yield Fault(module.path, 1, "docstring", "the module does not say what it is for")


def length(module: Module) -> Iterator[Fault]:
    """Small enough to see."""
    if len(module.lines) > MODULE_LINES:
        text = f"{len(module.lines)} lines; past {MODULE_LINES} look for the noun that wants out"
        yield Fault(module.path, 1, "module-length", text)
    for function in module.functions():
        if lines_of(function) > FUNCTION_LINES:
            text = f"{function.name} has {lines_of(function)} lines, more than {FUNCTION_LINES}"
            yield Fault(module.path, function.lineno, "function-length", text)


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def surface(module: Module) -> Iterator[Fault]:
    """Few parameters by position, few public methods."""
    if module.is_test:
        return
    for function in module.functions():
        positional = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        count = len(positional) - (positional[:1] in (["self"], ["cls"]))
        if count > POSITIONAL_PARAMETERS:
            text = f"{function.name} takes {count} positional parameters"
            yield Fault(module.path, function.lineno, "parameters", text)
    for owner in module.classes():
        methods = [node for node in owner.body if is_public_method(node) or is_grafted(node)]
        if len(methods) > PUBLIC_METHODS:
            text = f"{owner.name} has {len(methods)} public methods"
            yield Fault(module.path, owner.lineno, "public-methods", text)


def is_public_method(node: ast.stmt) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
        return False
    marks = [ast.unparse(mark) for mark in node.decorator_list]
    return not any(mark.endswith(("property", ".setter")) for mark in marks)


def is_grafted(node: ast.stmt) -> bool:
    """`append = follower.append` in a class: a method that stands in another module."""
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute | ast.Name)


def names(module: Module) -> Iterator[Fault]:
    """A name tells the role; these tell nothing."""
    if Path(module.path).stem in BANNED_MODULES:
        yield Fault(module.path, 1, "name", "name the module after what it holds")
    for owner in module.classes():
        if owner.name.endswith(BANNED_ENDINGS):
            yield Fault(module.path, owner.lineno, "name", f"{owner.name}: name what it is")


def left_overs(module: Module) -> Iterator[Fault]:
    """Work left in the source is work forgotten."""
    for number, line in enumerate(module.lines, 1):
        words = line.replace(":", " ").replace("(", " ").split()
        for mark in set(LEFT_OVERS).intersection(words):
            yield Fault(module.path, number, "left-over", f"{mark} left in the source")


RULES: Final[tuple[Rule, ...]] = (banned_calls, docstring, length, surface, names, left_overs)


def read_modules(root: Path) -> list[Module]:
    paths = (path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py")))
    return [Module(path.relative_to(root).as_posix(), path.read_text()) for path in paths]


class Waiver(NamedTuple):
    path: str
    rule: str


def read_waivers(text: str) -> list[Waiver]:
    """`path rule reason` a line; a waiver without a reason is not one."""
    rows = (line.split(maxsplit=2) for line in text.splitlines() if line and line[0] != "#")
    return [Waiver(row[0], row[1]) for row in rows if len(row) == 3]


def waive(faults: Sequence[Fault], waivers: Sequence[Waiver]) -> list[Fault]:
    """The faults nobody has waived, and the waivers that waive nothing."""
    excused = set(waivers)
    left = [fault for fault in faults if Waiver(fault.path, fault.rule) not in excused]
    idle = excused - {Waiver(fault.path, fault.rule) for fault in faults}
    return left + [
        Fault("tools/waivers.txt", 1, "waiver", f"{path} {rule}: waives nothing")
        for path, rule in sorted(idle)
    ]


def sizes(modules: Sequence[Module]) -> Iterator[str]:
    """The five largest modules and the five longest functions of the package."""
    ours = [module for module in modules if module.path.startswith("src/")]
    yield "largest modules"
    for module in sorted(ours, key=lambda m: -len(m.lines))[:5]:
        yield f"  {len(module.lines):4} {module.path}"
    functions = [(lines_of(f), f.name, m.path) for m in ours for f in m.functions()]
    yield "longest functions"
    for lines, name, path in sorted(functions, key=lambda row: -row[0])[:5]:
        yield f"  {lines:4} {name} ({path})"


def main(root: Path = ROOT) -> int:
    from tools import tidy_names, tidy_tree

    modules = read_modules(root)
    waivers = read_waivers((root / "tools" / "waivers.txt").read_text())
    faults = [fault for module in modules for rule in RULES for fault in rule(module)]
    faults += tidy_tree.faults(root, modules)
    faults += tidy_names.faults(modules)
    left = waive(faults, waivers)
    print("\n".join([*map(str, left), *sizes(modules)]))
    print(f"tidy: {len(left)} faults, {len(waivers)} waivers")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
