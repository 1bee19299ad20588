from __future__ import annotations

import re
from pathlib import Path

from tools.environment import KERBEROS_LOCK, LOCK, PROGRAMS, ROOT, Program, provide

JAVA = Program("java", "jdk", "Java tests")


def test_nothing_is_said_of_programs_that_are_there() -> None:
    assert provide([JAVA], lambda command: f"/bin/{command}", None) == []


def test_a_missing_program_is_fetched_when_that_is_allowed() -> None:
    there: set[str] = set()

    def fetch(package: str) -> bool:
        there.add(package)
        return True

    missing = provide([JAVA], lambda _: "/bin/java" if "jdk" in there else None, fetch)
    assert missing == []


def test_a_program_that_cannot_be_had_is_named_in_one_line() -> None:
    for fetch in (None, lambda _: False):
        [line] = provide([JAVA], lambda _: None, fetch)
        assert line == "java is missing and is needed for Java tests; as root: apt-get install jdk"


def test_the_lock_has_a_hash_for_every_package_and_names_no_index() -> None:
    assert_names_and_hashes(LOCK.read_text(), 21)
    assert_names_and_hashes(KERBEROS_LOCK.read_text(), 2)


def assert_names_and_hashes(text: str, at_least: int) -> None:
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links|file:", text)
    requirements = re.split(r"\n(?=\S)", text.strip())
    assert len(requirements) >= at_least
    assert all("--hash=sha256:" in requirement for requirement in requirements)


def test_no_file_of_the_ground_names_a_package_index() -> None:
    for name in ("pyproject.toml", "Makefile", ".ci/run", "tools/environment.py"):
        assert not re.search(r"(?<!emit-)index-url|https?://", (ROOT / name).read_text()), name


def test_the_programs_that_pip_cannot_bring_are_named_with_their_packages() -> None:
    assert {Path(program.command).name for program in PROGRAMS} == {
        "java", "javac", "mvn", "kcat", "pg_ctlcluster", "krb5kdc", "kadmin.local", "kinit",
        "krb5-config",
    }  # fmt: skip


def test_what_must_be_compiled_is_in_no_lock_that_everybody_installs() -> None:
    assert "gssapi" not in LOCK.read_text()
    assert "gssapi==" in KERBEROS_LOCK.read_text()
