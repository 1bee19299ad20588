"""The profiles of a user: clusters by name, with the client properties they need.

Owns: the file, which only its owner may read, and which properties are secrets. Never: connects.

The file is `ottla/profiles.json` in XDG_CONFIG_HOME (`~/.config`):

    {"current": "prod", "profiles": {"prod": {"bootstrap.servers": "kafka1:9092"}}}
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple

from ottla.config.client import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig
from ottla.model.errors import UserError

SERVERS: Final = "bootstrap.servers"
HIDDEN: Final = "(hidden)"
KNOWN: Final = frozenset(
    name for kind in (AdminConfig, ConsumerConfig, ProducerConfig) for name in kind.SETTINGS
)
PASSWORDS: Final = frozenset(
    name
    for kind in (AdminConfig, ConsumerConfig, ProducerConfig)
    for name, setting in kind.SETTINGS.items()
    if setting.sensitive
)
_SECRET: Final = re.compile(r"password|secret|token|jaas|credential", re.IGNORECASE)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Profiles(NamedTuple):
    """Every profile by name, and the one that is used where none is named."""

    profiles: Mapping[str, Mapping[str, str]]
    current: str | None

    def of(self, name: str) -> Mapping[str, str]:
        """The properties of a profile, `bootstrap.servers` among them."""
        if name not in self.profiles:
            known = ", ".join(sorted(self.profiles)) or "none; make one with: ottla profile add"
            raise UserError(f"profile {name!r}: there is no such profile; there are: {known}")
        return self.profiles[name]

    def with_profile(self, name: str, properties: Mapping[str, str]) -> Profiles:
        """With one more, or another in its place; the first is used at once."""
        if not _NAME.fullmatch(name):
            raise UserError(f"profile {name!r}: expected letters, digits, '.', '_' and '-'")
        return Profiles({**self.profiles, name: properties}, self.current or name)

    def without(self, name: str) -> Profiles:
        self.of(name)
        left = {key: value for key, value in self.profiles.items() if key != name}
        return Profiles(left, None if self.current == name else self.current)

    def using(self, name: str) -> Profiles:
        self.of(name)
        return Profiles(self.profiles, name)


def file_path(environment: Mapping[str, str]) -> Path:
    """Where profiles are kept."""
    home = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "ottla" / "profiles.json"


def load(path: Path) -> Profiles:
    """The profiles of a file; none where there is no file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        profiles = {
            str(name): {str(key): str(value) for key, value in properties.items()}
            for name, properties in content["profiles"].items()
        }
        return Profiles(profiles, content.get("current"))
    except FileNotFoundError:
        return Profiles({}, None)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: not a valid profiles file; fix its JSON or remove it") from None


def save(path: Path, profiles: Profiles) -> None:
    """Replace the file in one step; nobody but its owner may read it at any time."""
    content = {"current": profiles.current, "profiles": profiles.profiles}
    temporary = path.with_suffix(".tmp")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
        opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=2)
            file.write("\n")
        temporary.replace(path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None


def check_properties(properties: Mapping[str, str]) -> None:
    """Refuse a name that no client has. Its value is not repeated: it may be a secret."""
    for name in properties:
        if name not in KNOWN:
            near = get_close_matches(name, sorted(KNOWN), n=1)
            advice = f"; did you mean {near[0]}?" if near else ""
            raise UserError(f"--set {name}: no client has such a property{advice}")


def mask_secrets(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties as people may see them."""
    return {
        name: HIDDEN if name in PASSWORDS or _SECRET.search(name) else value
        for name, value in sorted(properties.items())
    }


def usable(properties: Mapping[str, str], kind: type[ClientConfig]) -> dict[str, str]:
    """Those that this kind of client has: a producer's mean nothing to an admin client."""
    return {
        name: value
        for name, value in properties.items()
        if name in kind.SETTINGS and name != SERVERS
    }
