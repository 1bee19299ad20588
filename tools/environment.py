"""Makes the development environment: `.venv`, and the programs that pip cannot bring.

Owns: `.venv`, the stamp inside it that says for which lock file it was made, and the list of
packages that were asked for once.
Never: imports anything outside the standard library, or names a package index; where packages
come from is the machine's own pip and apt configuration.

    python -m tools.environment            .venv; a second time returns at once, without the network
    python -m tools.environment java       the program that `make run` wants besides
    python -m tools.environment programs   those that the tests want

Programs are installed where that is allowed: by root, and by whom sudo asks for no password. Where
it is not, or does not work, one line for each says what it is for and how to get it.
"""

from __future__ import annotations

import hashlib
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tools.pip_progress import ProgressDisplay, packages_of

ROOT: Final = Path(__file__).resolve().parent.parent
VENV: Final = ROOT / ".venv"
STAMP: Final = VENV / "made-for"
ASKED: Final = VENV / "asked-apt-for"
LOCK: Final = ROOT / "requirements.lock"
KERBEROS_LOCK: Final = ROOT / "requirements-kerberos.lock"


class Program(NamedTuple):
    """A program that pip cannot bring, the Debian packages that do, and who misses it."""

    command: str
    package: str
    needed_for: str


class Failed(Exception):
    """The environment cannot be made; the message says why, and what to do."""


JAVA: Final = Program("java", "default-jdk-headless", "pipelines on Spark and the Java clients")
PROGRAMS: Final = (
    JAVA,
    Program("javac", "default-jdk-headless", "the Java client tests"),
    Program("mvn", "maven", "fetching Kafka's clients and tools"),
    Program("kcat", "kcat", "the kcat tests"),
    Program("pg_ctlcluster", "postgresql", "the tests with a database"),
    Program("/usr/sbin/krb5kdc", "krb5-kdc libsasl2-modules-gssapi-mit", "the Kerberos tests"),
    Program("/usr/sbin/kadmin.local", "krb5-admin-server", "the Kerberos tests"),
    Program("kinit", "krb5-user", "the Kerberos tests with kcat"),
    Program("krb5-config", "gcc python3-dev libkrb5-dev", "compiling gssapi, for Kerberos"),
)
WANTED: Final = {"java": (JAVA,), "programs": PROGRAMS}


def main(arguments: Sequence[str]) -> int:
    try:
        if arguments:
            for line in provide(WANTED[arguments[0]], shutil.which, fetcher()):
                print(f"setup: {line}", file=sys.stderr)
            if arguments[0] == "programs":
                install_kerberos()
        else:
            make()
    except Failed as failure:
        print(f"setup: {failure}", file=sys.stderr)
        return 1
    return 0


def make() -> None:
    """The virtual environment, unless it is there."""
    wanted = fingerprint()
    if STAMP.is_file() and STAMP.read_text() == wanted:
        return
    make_venv()
    install()
    STAMP.write_text(wanted)


def fingerprint() -> str:
    """Changes whenever the environment must be made again."""
    digest = hashlib.sha256(LOCK.read_bytes())
    digest.update((ROOT / "pyproject.toml").read_bytes())
    return f"{sys.version_info.major}.{sys.version_info.minor} {digest.hexdigest()}\n"


def make_venv() -> None:
    say("making .venv")
    if (VENV / "bin" / "pip").exists() and same_python():
        return
    command = [sys.executable, "-m", "venv", str(VENV)]
    for attempt in range(2):
        shutil.rmtree(VENV, ignore_errors=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        # Debian ships Python without ensurepip.
        if attempt or not (can_apt() and apt_install("python3-venv")):
            break
    shutil.rmtree(VENV, ignore_errors=True)
    if "ensurepip" in done.stdout + done.stderr:
        raise Failed(
            "Python's venv module lacks ensurepip; Debian, as root: apt-get install python3-venv"
        )
    raise Failed(f"{' '.join(command)} failed: {_last_line(done.stderr or done.stdout)}")


def same_python() -> bool:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return (VENV / "bin" / version).exists()


def install() -> None:
    """The locked packages, checked by hash, then this project in place."""
    say("installing what requirements.lock names (the first time takes minutes: Spark is large)")
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
    pip += ["--progress-bar", "off"]
    display = ProgressDisplay(packages_of(LOCK))
    try:
        run_pip([*pip, "--require-hashes", "--requirement", str(LOCK)], display)
        run_pip([*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)], None)
    finally:
        display.over()


def install_kerberos() -> None:
    """gssapi, once for each lock of it, where it can be compiled; a line says why it cannot."""
    attempt = f"gssapi-{hashlib.sha256(KERBEROS_LOCK.read_bytes()).hexdigest()[:16]}"
    attempted = _attempted()
    if attempt in attempted or shutil.which("krb5-config") is None:
        return
    ASKED.write_text("\n".join(sorted({*attempted, attempt})))
    say("compiling gssapi, for Kerberos (a minute)")
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
    try:
        run_pip([*pip, "--require-hashes", "--requirement", str(KERBEROS_LOCK)], None)
    except Failed as failure:
        say(f"gssapi cannot be installed, the Kerberos tests are skipped: {failure}")


def run_pip(command: Sequence[str], display: ProgressDisplay | None) -> None:
    """Run pip to its end, and show how far it is; Failed with what it said if it fails."""
    began = time.monotonic()
    output: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as pip:
        lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_listen, args=(pip, lines), daemon=True).start()
        while True:
            try:
                line = lines.get(timeout=1)
            except queue.Empty:
                line = ""
            if line is None:
                break
            if line:
                output.append(line.rstrip())
            if display is not None:
                display.add_line(line or None, time.monotonic() - began)
    if pip.returncode != 0:
        if display is not None:
            display.over()
        errors = [line for line in output if line.startswith("ERROR")] or output[-5:]
        raise Failed("pip failed: " + "\n".join([*errors, f"({' '.join(command)})"]))


def _listen(pip: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert pip.stdout is not None
    for line in pip.stdout:
        lines.put(line)
    lines.put(None)


def provide(
    programs: Sequence[Program],
    find: Callable[[str], str | None],
    fetch: Callable[[str], bool] | None,
) -> list[str]:
    """Fetch the programs that are missing, if we may; what is still missing, a line each."""
    missing = []
    for command, package, needed_for in programs:
        if find(command) is None and fetch is not None:
            fetch(package)
        if find(command) is None:
            missing.append(
                f"{command} is missing and is needed for {needed_for}; "
                f"as root: apt-get install {package}"
            )
    return missing


def fetcher() -> Callable[[str], bool] | None:
    """What installs packages, once for each environment; None where nobody may."""
    attempted = _attempted()

    def fetch(package: str) -> bool:
        if package in attempted or not can_apt():
            return False
        attempted.add(package)
        ASKED.write_text("\n".join(sorted(attempted)))
        return apt_install(package)

    return fetch


def _attempted() -> set[str]:
    return set(ASKED.read_text().splitlines()) if ASKED.is_file() else set()


def can_apt() -> bool:
    """Whether packages can be installed without asking anybody."""
    return shutil.which("apt-get") is not None and as_root() is not None


def as_root() -> list[str] | None:
    """What a command of root's begins with; None if we are not root and may not be."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") is None:
        return None
    asks_nothing = subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False)
    return ["sudo", "-n"] if asks_nothing.returncode == 0 else None


def apt_install(package: str) -> bool:
    say(f"installing {package} with apt-get (as root)")
    apt = [*(as_root() or []), "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    install = [*apt, "install", "--yes", "--quiet", "--no-install-recommends", *package.split()]
    for command in (install, [*apt, "update", "--quiet"], install):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if command is install and done.returncode == 0:
            return True
    say(f"apt-get could not install {package}: {_last_line(done.stderr)}")
    return False


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
