"""The values of a pipeline file: includes, a profile, `--set`, variables; in this order.

Owns: how they are put over one another, and which of the values are secret.
Never: knows the keys of a pipeline; `yaml_file` does.

    include: [common.yaml]               values of other files, under those of this one
    profile: dev                         which profile is taken without --profile
    profiles:
      dev: {bootstrap: "localhost:9092"}
      prod: {bootstrap: "broker:9092", sinks: {clean: {mode: update}}}

Mappings are put together key by key. The lists `steps` and `sinks` of an included file come before
those of the file; a mapping put over a list changes items by their number or name, as `--set` does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from ottla.model.errors import UserError
from ottla.spark.pipelines.variables import Masks, Resolved, YamlMapping, YamlValue, resolve

MAX_INCLUDES: Final = 10
"""How deep files may include files."""
JOINED: Final = ("steps", "sinks")


class FileValues(NamedTuple):
    """The values of a file, what of them is never printed, and the variables that are unknown."""

    values: Mapping[str, YamlValue]
    masks: Masks
    mistakes: Mapping[str, str]
    """By the path of the value: `sources.views.topic`, `sinks[0].name`."""


def load(path: Path, overrides: Sequence[str] = (), profile: str | None = None) -> FileValues:
    """The values of a file with everything put over them that shall be."""
    values = with_profile(read_with_includes(path), profile, path)
    for setting in overrides:
        override(values, setting)
    found = Resolved()
    resolved = resolve(values, os.environ, lambda name: read_text(path.parent / name), found)
    return FileValues(resolved, found.masks(values), found.mistakes)


def read_with_includes(path: Path, including: tuple[Path, ...] = ()) -> YamlMapping:
    """The values of a file, put over those of the files that it includes."""
    values = _mapping(path)
    names = values.pop("include", [])
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UserError(f"{path}: include: expected a file or a list of files")
    chain = (*including, path.resolve())
    if len(chain) > MAX_INCLUDES:
        raise UserError(f"{path}: include: more than {MAX_INCLUDES} files include one another")
    below: YamlMapping = {}
    for name in names:
        included = (path.parent / name).resolve()
        if included in chain:
            raise UserError(f"{path}: include: {name} includes this file")
        below = merge(below, read_with_includes(included, chain), joined=JOINED)
    return merge(below, values, joined=JOINED)


def with_profile(values: YamlMapping, profile: str | None, path: Path) -> YamlMapping:
    """The values with those of a profile put over them."""
    profiles, usual = values.pop("profiles", None), values.pop("profile", None)
    name = profile or usual
    if profiles is not None and not isinstance(profiles, dict):
        raise UserError(f"{path}: profiles: expected a mapping of names and values")
    if name is None:
        return values
    profiles = profiles or {}
    if not isinstance(name, str) or name not in profiles:
        known = ", ".join(map(str, profiles)) or "none"
        raise UserError(f"{path}: profile: there is no profile {name}; the file has: {known}")
    over = profiles[name] or {}
    if not isinstance(over, dict):
        raise UserError(f"{path}: profiles.{name}: expected a mapping of values")
    return merge(values, over, where=f"{path}: profiles.{name}")


def merge(
    below: YamlMapping,
    over: Mapping[str, YamlValue],
    *,
    joined: Sequence[str] = (),
    where: str = "",
) -> YamlMapping:
    """Mappings put together key by key; the one above decides."""
    result = dict(below)
    for name, value in over.items():
        under = result.get(name)
        if isinstance(under, dict) and isinstance(value, dict):
            result[name] = merge(under, value, where=f"{where}.{name}")
        elif name in joined and isinstance(under, list) and isinstance(value, list):
            result[name] = [*under, *value]
        elif isinstance(under, list) and isinstance(value, dict):
            result[name] = _changed_items(under, value, f"{where}.{name}")
        else:
            result[name] = value
    return result


def _changed_items(
    items: list[YamlValue], changes: Mapping[str, YamlValue], where: str
) -> list[YamlValue]:
    result = list(items)
    for name, change in changes.items():
        place = index(items, str(name), where)
        if not isinstance(result[place], dict) or not isinstance(change, dict):
            raise UserError(f"{where}.{name}: expected a mapping over a mapping")
        result[place] = merge(result[place], change, where=f"{where}.{name}")
    return result


def override(values: YamlMapping, setting: str) -> None:
    """Set the value at the path of one `--set a.b=c`, parsed as YAML.

    An item of a list is named by its number or by its name: `sinks.0.mode`, `sinks.clean.mode`.
    """
    import yaml

    path, separator, text = setting.partition("=")
    if not separator or not path:
        raise UserError(f"--set {setting}: expected name=value, such as trigger=once")
    *parents, last = path.split(".")
    where = f"--set {setting}"
    target: YamlValue = values
    for name in parents:
        if isinstance(target, dict):
            target = target.setdefault(name, {})
        else:
            target = target[index(target, name, where)]
        if not isinstance(target, dict | list):
            raise UserError(f"{where}: {name} is not a mapping")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"{where}: not YAML: {error}") from None
    target[last if isinstance(target, dict) else index(target, last, where)] = value


def index(items: Sequence[YamlValue], name: str, where: str) -> int:
    """The place of an item in a list, by its number or its name."""
    names = [item.get("name") if isinstance(item, dict) else None for item in items]
    if name in names:
        return names.index(name)
    if name.isdecimal() and int(name) < len(items):
        return int(name)
    known = ", ".join(str(item) for item in names if item is not None)
    raise UserError(
        f"{where}: no item {name}; expected 0 to {len(items) - 1}"
        + (f" or one of {known}" if known else "")
    )


@contextmanager
def masked_errors(masks: Masks) -> Iterator[None]:
    """A UserError in the block shows no secret."""
    try:
        yield
    except UserError as error:
        if masks.mask(str(error)) == str(error):
            raise
        raise UserError(masks.mask(str(error))) from None


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not a text file: byte {error.start} is not UTF-8") from None


def _mapping(path: Path) -> YamlMapping:
    import yaml

    try:
        values = yaml.safe_load(read_text(path))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not YAML: {error}") from None
    if not isinstance(values, dict):
        raise UserError(f"{path}: expected a YAML mapping, such as name: page-views")
    return values
