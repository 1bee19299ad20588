"""`ottla users`, `ottla certs` and `ottla serve --secure`, as a person uses them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ottla.cli.main import run
from ottla.cli.secure_start import ADMIN, CLIENT_FILE, prepare
from ottla.config.properties import read_file
from ottla.testing import Broker


def test_certs_make_writes_files_that_only_their_owner_may_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "certs"
    assert run(["certs", "make", str(folder), "--client", "alice"]) == 0
    names = {path.name for path in folder.iterdir()}
    assert {"ca.pem", "ca.key", "broker.pem", "broker.p12", "alice.pem", "alice.p12"} <= names
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert run(["certs", "make", str(folder)]) == 2
    assert "--force" in capsys.readouterr().err


def test_a_secure_start_makes_a_user_who_can_add_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, data = tmp_path / "security", tmp_path / "data"
    sets = [f"log.dirs={data}", "listeners=SASL_SSL://localhost:0"]
    secure = prepare(folder, None, sets)
    assert prepare(folder, None, sets) == secure, "a second start makes nothing"
    client = folder / CLIENT_FILE
    assert stat.S_IMODE(client.stat().st_mode) == 0o600
    password = read_file(client)["sasl.jaas.config"].partition('password="')[2].partition('"')[0]
    assert password not in capsys.readouterr().err, "no terminal is there"
    settings = dict(pair.split("=", 1) for pair in (*secure, *sets))
    with Broker(settings, data_dir=data) as broker:
        reach = ["--command-config", str(client), "-b", broker.bootstrap_servers]
        secret = tmp_path / "alice.secret"
        secret.write_text("planted-secret\n")
        added = ["users", "add", "alice", "--password-file", str(secret)]
        assert run([*reach, *added]) == 0
        assert run([*reach, "users", "list", "--json"]) == 0
        assert run([*reach, "users", "remove", "alice", "--yes"]) == 0
        assert run([*reach, "users", "remove", "alice", "--yes"]) == 1
        offline = [*added, "--offline", "--set", f"log.dirs={data}"]
        assert run(offline) == 2, "the broker runs"
    said = capsys.readouterr()
    assert f'"{ADMIN}"' in said.out
    assert '"alice"' in said.out
    assert "a broker uses this directory" in said.err
    assert "planted-secret" not in said.out + said.err
    assert run(offline) == 0
