"""`ottla users`, `ottla certs` and `ottla serve --secure`, as a person uses them."""

from __future__ import annotations

import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.cli.main import run
from ottla.cli.secure_start import ADMIN, CLIENT_FILE, prepare
from ottla.config.properties import read_file
from ottla.testing import Broker
from tools.nodes import free_ports


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


def test_a_secure_start_takes_its_first_record_within_five_seconds_of_work(tmp_path: Path) -> None:
    """Processor time, which does not depend on what else the machine does; on an idle one it is
    longer than the time that passes."""

    def worked_s() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    [port] = free_ports(1)
    before_s = worked_s()
    command = [sys.executable, "-m", "ottla"]
    options = ["serve", "--secure", "security", "--listeners", f"SASL_SSL://localhost:{port}"]
    with subprocess.Popen(
        [*command, *options, "--data-dir", "data"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as broker:  # fmt: skip
        assert broker.stdout is not None
        assert "ready on SASL_SSL://" in broker.stdout.readline()
        client = ["--command-config", "security/client.properties"]
        sent = subprocess.run(
            [*command, *client, "produce", "orders"],
            cwd=tmp_path, input="hello\n", text=True, capture_output=True, check=False,
        )  # fmt: skip
        broker.terminate()
    assert sent.returncode == 0, sent.stderr
    assert worked_s() - before_s < 5
