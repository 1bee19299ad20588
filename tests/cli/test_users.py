"""`ottla users`, `ottla certs` and `ottla serve --secure`, as a person uses them."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509

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


def test_a_secure_start_with_new_data_keeps_its_administrator(tmp_path: Path) -> None:
    folder, data = tmp_path / "security", tmp_path / "data"
    sets = [f"log.dirs={data}", "listeners=SASL_SSL://localhost:0"]
    secure = prepare(folder, None, sets)
    shutil.rmtree(data)
    settings = dict(pair.split("=", 1) for pair in (*secure, *sets))
    assert prepare(folder, None, sets) == secure
    with Broker(settings, data_dir=data) as broker:
        reach = ["--command-config", str(folder / CLIENT_FILE), "-b", broker.bootstrap_servers]
        assert run([*reach, "topics", "list"]) == 0


@pytest.mark.parametrize(
    ("listeners", "server"),
    [
        (["listeners=SASL_SSL://:9092"], "localhost:9092"),
        (["listeners=SASL_SSL://0.0.0.0:9092"], "localhost:9092"),
        (["listeners=SASL_SSL://[::]:9092"], "localhost:9092"),
        (["listeners=SASL_SSL://[::1]:9092"], "[::1]:9092"),
        (
            [
                "listeners=SASL_SSL://0.0.0.0:9092",
                "advertised.listeners=SASL_SSL://broker.example:19092",
            ],
            "broker.example:19092",
        ),
        (["listeners=PLAINTEXT://a.example:1,SASL_SSL://b.example:2"], "b.example:2"),
    ],
)
def test_a_secure_start_names_a_broker_that_its_certificate_is_for(
    tmp_path: Path, listeners: list[str], server: str
) -> None:
    folder, data = tmp_path / "security", tmp_path / "data"
    prepare(folder, None, [f"log.dirs={data}", *listeners])
    assert read_file(folder / CLIENT_FILE)["bootstrap.servers"] == server
    pem = (folder / "broker.pem").read_bytes()
    certificate = x509.load_pem_x509_certificates(pem)[0]
    extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    names = {str(name.value) for name in extension.value}
    assert server.rpartition(":")[0].strip("[]") in names
    assert {"localhost", "127.0.0.1", "::1", socket.getfqdn()} <= names, "as it is advertised"


@pytest.mark.parametrize(("umask", "mode"), [("077", 0o600), ("027", 0o640)])
def test_what_is_written_before_the_broker_starts_is_as_private_as_its_files(
    tmp_path: Path, umask: str, mode: int
) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    before = os.umask(0o022)
    try:
        sets = [f"log.dirs={data}", f"log.dirs.umask={umask}", "listeners=SASL_SSL://:9092"]
        prepare(tmp_path / "security", None, sets)
    finally:
        os.umask(before)
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in data.iterdir()}
    assert "ottla-store.sqlite" in files
    assert set(files.values()) == {mode}, files


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
