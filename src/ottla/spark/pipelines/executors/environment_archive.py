"""What executors need of Ottla, as one archive that Spark hands to them.

Owns: which installed packages are in it, and whether a pipeline's are. Executors that have Python
and Spark, and nothing of Ottla, unpack it into their working folder and find the packages there.
Never: packs Spark itself, or what the driver alone uses.

The first member lists the packages, so that a pipeline can be refused before its tasks start.

    ottla pipeline pack ottla-env.tar.gz
    spark-submit --archives ottla-env.tar.gz#ottla_env \
        --conf spark.executorEnv.PYTHONPATH=./ottla_env job.py
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model.errors import UserError

if TYPE_CHECKING:
    from ottla.spark.pipelines.executors.task_packages import Needed

FOLDER: Final = "ottla_env"
"""What the archive is called in the working folder of an executor."""
PACKAGES: Final = "ottla-packages.json"
"""The first member of the archive: the names of the packages in it."""
EXTRAS: Final = ("arrow", "avro", "protobuf", "registry", "database", "security", "kerberos")
"""Of Ottla: what its tasks may import. An extra whose packages are not installed is left out."""
DRIVERS: Final = "adbc-driver-"
"""How the packages of databases begin: those that are installed beside the extra's are needed."""
WITH_SPARK: Final = frozenset(("pyspark", "py4j"))
FOR_WORKERS: Final = ("pandas",)
"""What Spark's own Python workers import, and its archive of Python files does not have."""
OWN: Final = ("ottla", "pyspark_ottla")
REQUIREMENT: Final = re.compile(r"(?P<name>[\w.-]+)\s*(\[(?P<extras>[^]]*)\])?")
EXTRA: Final = re.compile(r"""extra\s*==\s*['"]([\w.-]+)['"]""")
ENDINGS: Final = (".tar", ".tar.gz", ".tgz")


def pack(target: Path, more: Sequence[str] = ()) -> list[str]:
    """Write the archive, with `more` packages and theirs; the names of the packages in it."""
    if not target.name.endswith(ENDINGS):
        raise UserError(f"{target}: expected a name that ends in {', '.join(ENDINGS)}")
    names = sorted(needed_packages(more))
    compressed = {} if target.suffix == ".tar" else {"compresslevel": 1}
    mode = "w" if target.suffix == ".tar" else "w:gz"
    new = target.with_name(f".{target.name}.new")
    try:
        with tarfile.open(new, mode, **compressed) as archive:  # type: ignore[call-overload]
            listing = json.dumps(names).encode()
            head = tarfile.TarInfo(PACKAGES)
            head.size = len(listing)
            archive.addfile(head, io.BytesIO(listing))
            for path, inside in files(names):
                archive.add(path, inside, recursive=False)
        new.replace(target)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise UserError(f"{target}: {error.strerror}") from None
    return names


def settings(archive: Path) -> Mapping[str, str]:
    """Settings of a session whose executors get this archive."""
    return {
        "spark.archives": f"{archive.absolute()}#{FOLDER}",
        "spark.executorEnv.PYTHONPATH": f"./{FOLDER}",
    }


def check(archive: Path, needs: Iterable[Needed]) -> None:
    """UserError for an archive that is missing, or lacks packages.

    One that was packed by something else is taken as it is.
    """
    if not archive.is_file():
        raise UserError(f"{archive}: no such file; ottla pipeline pack {archive} writes it")
    names = _listed_packages(archive)
    if names is None:
        return
    missing = [need for need in needs if need.package not in names]
    if missing:
        lines = [f"{need.where} needs {need.package}" for need in missing]
        extras = ",".join(sorted({need.extra for need in missing}))
        raise UserError(
            f"{archive} lacks packages that tasks import: {'; '.join(lines)}. Install them with "
            f"pip install 'ottla[{extras}]', then pack again: ottla pipeline pack {archive}"
        )


def _listed_packages(archive: Path) -> set[str] | None:
    """The packages that the archive says it has."""
    try:
        with tarfile.open(archive) as members:
            first = members.next()
            if first is None or first.name != PACKAGES:
                return None
            listing = members.extractfile(first)
            return set(json.load(listing)) if listing is not None else None
    except (OSError, tarfile.TarError) as error:
        raise UserError(f"{archive}: not an archive that can be read: {error}") from None


def needed_packages(more: Sequence[str] = ()) -> set[str]:
    """The installed packages that tasks need, by name, those they depend on included."""
    start = {"ottla": EXTRAS, **dict.fromkeys((*FOR_WORKERS, *_drivers()), ())}
    for name in map(_normal, more):
        if _requirements(name) is None:
            raise UserError(f"--with {name}: not installed; expected the name of a package")
        start.setdefault(name, ())
    return with_dependencies(start, _requirements)


def with_dependencies(
    start: Mapping[str, Sequence[str]], requirements: Callable[[str], Sequence[str] | None]
) -> set[str]:
    """Packages, those they require and so on; `start` has the extras of each. `requirements` is
    None for what is not installed."""
    found: set[tuple[str, str]] = set()
    waiting = [(name, extra) for name, extras in start.items() for extra in ("", *extras)]
    while waiting:
        name, extra = waiting.pop()
        required = requirements(name)
        if (name, extra) in found or name in WITH_SPARK or required is None:
            continue
        found.add((name, extra))
        for wanted in map(_requirement, required):
            if extra in wanted.condition or not wanted.condition:
                waiting += [(wanted.name, inner) for inner in ("", *wanted.extras)]
    return {name for name, _ in found}


def _requirements(name: str) -> Sequence[str] | None:
    try:
        return metadata.requires(name) or ()
    except metadata.PackageNotFoundError:
        return None


def _drivers() -> list[str]:
    names = (_normal(each.name) for each in metadata.distributions() if each.name)
    return [name for name in names if name.startswith(DRIVERS)]


def files(names: list[str]) -> Iterator[tuple[Path, str]]:
    """The files of the packages, and where they lie in the archive."""
    for name in names:
        if name == "ottla":
            continue  # installed for development it has no list of files
        for file in metadata.files(name) or ():
            inside = file.as_posix()
            is_code = not inside.startswith("..") and "__pycache__" not in inside
            if is_code and (path := Path(str(file.locate()))).is_file():
                yield path, inside
    for package in OWN:
        folder = _folder(package)
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path, str(Path(package) / path.relative_to(folder))


def _folder(package: str) -> Path:
    from importlib.util import find_spec

    found = find_spec(package)
    assert found is not None and found.origin is not None, f"{package} is part of Ottla"
    return Path(found.origin).parent


class Requirement(NamedTuple):
    """What one package says it needs: of which extras, and with which of its own extras it is
    needed at all. Other conditions are met where it is installed."""

    name: str
    extras: tuple[str, ...]
    condition: frozenset[str]


def _requirement(text: str) -> Requirement:
    needs, _, condition = text.partition(";")
    found = REQUIREMENT.match(needs.strip())
    assert found is not None, f"not a requirement: {text}"
    extras = tuple(part.strip() for part in (found["extras"] or "").split(",") if part.strip())
    return Requirement(_normal(found["name"]), extras, frozenset(EXTRA.findall(condition)))


def _normal(name: str) -> str:
    """A package's name as it is compared."""
    return re.sub(r"[-_.]+", "-", name).lower()
