"""What executors need of Ottla, as one archive that Spark hands to them.

Owns: which installed packages are in it. Executors that have Python and Spark, and nothing of
Ottla, unpack it into their working folder and find the packages there. Never: packs Spark itself,
or what the driver alone uses.

    ottla pipeline pack ottla-env.tar.gz
    spark-submit --archives ottla-env.tar.gz#ottla_env \
        --conf spark.executorEnv.PYTHONPATH=./ottla_env job.py
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple

from ottla.model.errors import UserError

FOLDER: Final = "ottla_env"
"""What the archive is called in the working folder of an executor."""
EXTRAS: Final = ("arrow", "avro", "protobuf")
"""Of Ottla: what its tasks may import. An extra whose packages are not installed is left out."""
WITH_SPARK: Final = frozenset(("pyspark", "py4j"))
FOR_WORKERS: Final = ("pandas",)
"""What Spark's own Python workers import, and its archive of Python files does not have."""
OWN: Final = ("ottla", "pyspark_ottla")
REQUIREMENT: Final = re.compile(r"(?P<name>[\w.-]+)\s*(\[(?P<extras>[^]]*)\])?")
EXTRA: Final = re.compile(r"""extra\s*==\s*['"]([\w.-]+)['"]""")
ENDINGS: Final = (".tar", ".tar.gz", ".tgz")


def pack(target: Path) -> list[str]:
    """Write the archive; the names of the packages in it."""
    if not target.name.endswith(ENDINGS):
        raise UserError(f"{target}: expected a name that ends in {', '.join(ENDINGS)}")
    names = sorted(needed())
    compressed = {} if target.suffix == ".tar" else {"compresslevel": 1}
    mode = "w" if target.suffix == ".tar" else "w:gz"
    new = target.with_name(f".{target.name}.new")
    try:
        with tarfile.open(new, mode, **compressed) as archive:  # type: ignore[call-overload]
            for path, inside in files(names):
                archive.add(path, inside, recursive=False)
        new.replace(target)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise UserError(f"{target}: {error.strerror}") from None
    return names


def settings(archive: Path) -> Mapping[str, str]:
    """Settings of a session whose executors get this archive."""
    if not archive.is_file():
        raise UserError(f"{archive}: no such file; ottla pipeline pack {archive} writes it")
    return {
        "spark.archives": f"{archive.absolute()}#{FOLDER}",
        "spark.executorEnv.PYTHONPATH": f"./{FOLDER}",
    }


def needed() -> set[str]:
    """The installed packages that tasks need, by name, those they depend on included."""
    names: set[str] = set()
    waiting: list[tuple[str, tuple[str, ...]]] = [("ottla", EXTRAS)]
    waiting += [(name, ()) for name in FOR_WORKERS]
    while waiting:
        name, extras = waiting.pop()
        if name in names and not extras:
            continue
        try:
            requirements = metadata.requires(name) or ()
        except metadata.PackageNotFoundError:
            continue  # of an extra that is not installed
        names.add(name)
        for wanted in map(_required, requirements):
            is_meant = not wanted.condition or wanted.condition.intersection(extras)
            if is_meant and wanted.name not in names | WITH_SPARK:
                waiting.append((wanted.name, wanted.extras))
    return names


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


def _required(text: str) -> Requirement:
    needs, _, condition = text.partition(";")
    found = REQUIREMENT.match(needs.strip())
    assert found is not None, f"not a requirement: {text}"
    extras = tuple(part.strip() for part in (found["extras"] or "").split(",") if part.strip())
    name = re.sub(r"[-_.]+", "-", found["name"]).lower()
    return Requirement(name, extras, frozenset(EXTRA.findall(condition)))
