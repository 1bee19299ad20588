"""Makes the development environment: `.venv`, and the programs the tests drive.

Owns: `.venv` and the stamp inside it that says for which lock file it was made.
Never: imports anything outside the standard library, or names a package index; where packages
come from is the machine's own pip configuration.

A second run finds the stamp and returns at once, without the network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
VENV: Final = ROOT / ".venv"
STAMP: Final = VENV / "made-for"
LOCK: Final = ROOT / "requirements.lock"


class Program(NamedTuple):
    """A program that pip cannot bring, the Debian package that does, and who misses it."""

    command: str
    package: str
    needed_for: str


PROGRAMS: Final = (
    Program("java", "default-jdk-headless", "the Java clients, Kafka's tools and Spark"),
    Program("javac", "default-jdk-headless", "the Java client tests"),
    Program("mvn", "maven", "fetching Kafka's clients and tools"),
    Program("kcat", "kcat", "the kcat tests"),
)


def main() -> int:
    wanted = fingerprint()
    fetch = None
    if not STAMP.is_file() or STAMP.read_text() != wanted:
        fetch = apt_install if can_apt() else None
        try:
            make_venv()
            install()
        except subprocess.CalledProcessError as failure:
            print(f"setup: failed: {' '.join(map(str, failure.cmd))}", file=sys.stderr)
            return 1
        STAMP.write_text(wanted)
    for line in provide(PROGRAMS, shutil.which, fetch):
        print(f"setup: {line}", file=sys.stderr)
    return 0


def fingerprint() -> str:
    """Changes whenever the environment must be made again."""
    digest = hashlib.sha256(LOCK.read_bytes())
    digest.update((ROOT / "pyproject.toml").read_bytes())
    return f"{sys.version_info.major}.{sys.version_info.minor} {digest.hexdigest()}\n"


def make_venv() -> None:
    say("making .venv")
    if (VENV / "bin" / "pip").exists() and same_python():
        return
    shutil.rmtree(VENV, ignore_errors=True)
    command = [sys.executable, "-m", "venv", str(VENV)]
    if subprocess.run(command, capture_output=True, check=False).returncode == 0:
        return
    if can_apt():  # Debian ships Python without ensurepip
        apt_install("python3-venv")
    shutil.rmtree(VENV, ignore_errors=True)
    run(command)


def same_python() -> bool:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return (VENV / "bin" / version).exists()


def install() -> None:
    """The locked packages, checked by hash, then this project in place."""
    say("installing what requirements.lock names (the first time takes minutes: Spark is large)")
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    pip += ["--disable-pip-version-check"]
    run([*pip, "--require-hashes", "--requirement", str(LOCK)])
    run([*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)])


def provide(
    programs: Sequence[Program],
    find: Callable[[str], str | None],
    fetch: Callable[[str], bool] | None,
) -> list[str]:
    """Fetch the programs that are missing, if we may; what is still missing, a line each."""
    missing = []
    for command, package, needed_for in programs:
        if find(command) is None and fetch is not None:
            say(f"installing {package}")
            fetch(package)
        if find(command) is None:
            missing.append(
                f"{command} is missing and is needed for {needed_for}; "
                f"as root: apt-get install {package}"
            )
    return missing


def can_apt() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt_install(package: str) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", package]
    for command in (install, ["apt-get", "update", "--quiet"], install):
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        if command is install and done.returncode == 0:
            return True
    return False


def run(command: list[str]) -> None:
    subprocess.run(command, check=True)


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
