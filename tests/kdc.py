"""A real Kerberos realm on loopback for tests: Debian's KDC, its principals and their keys.

Runs where krb5-kdc and krb5-admin-server are installed (`make setup` does that where it may). While
it runs, KRB5_CONFIG of this process points to it, so that Kerberos libraries find it here and in
the programs that tests start.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.cluster.process import wait_for
from tests.skips import skip_without
from tools.nodes import free_ports

NAME: Final = "OTTLA.TEST"
SERVICE: Final = "kafka/localhost"
KRB5_MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
PROGRAMS: Final = {
    "krb5kdc": "krb5-kdc",
    "kdb5_util": "krb5-kdc",
    "kadmin.local": "krb5-admin-server",
}
START_S: Final = 20


class Realm:
    """The files of a realm, and its principals."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self.krb5_conf = folder / "krb5.conf"
        self._environment = {
            **os.environ,
            "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
            "KRB5_CONFIG": str(self.krb5_conf),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
        }
        self._write()

    def keytab(self, principal: str) -> Path:
        return self.folder / f"{principal.replace('/', '-')}.keytab"

    def jaas(self, principal: str, *, keytab: Path | None = None) -> str:
        """The JAAS line of a client or a broker that has this principal's key."""
        return (
            f"{KRB5_MODULE} required useKeyTab=true storeKey=true doNotPrompt=true "
            f'keyTab="{keytab or self.keytab(principal)}" principal="{principal}@{NAME}";'
        )

    def add(self, *principals: str) -> None:
        """Principals with a random key each, in a key table of their own."""
        self.administrate(
            line
            for principal in principals
            for line in (
                f"addprinc -randkey {principal}",
                f"ktadd -k {self.keytab(principal)} {principal}",
            )
        )

    def administrate(self, lines: Iterable[str]) -> None:
        done = self._run("kadmin.local", "-r", NAME, stdin="\n".join(lines))
        assert "kadmin.local: " not in done.stderr, done.stderr

    def create(self) -> None:
        self._run("kdb5_util", "create", "-s", "-r", NAME, "-P", "master")

    def launch(self) -> subprocess.Popen[bytes]:
        command = [self._program("krb5kdc"), "-n", "-r", NAME]
        with (self.folder / "output.txt").open("wb") as output:
            return subprocess.Popen(
                command, env=self._environment, stdout=output, stderr=subprocess.STDOUT
            )

    def answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def _run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [self._program(words[0]), *words[1:]]
        done = subprocess.run(
            command, env=self._environment, input=stdin, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def _program(self, name: str) -> str:
        found = shutil.which(name, path=self._environment["PATH"])
        if found is None:
            skip_without(f"{name} is missing; as root: apt-get install {PROGRAMS[name]}")
        return found

    def _write(self) -> None:
        self.krb5_conf.write_text(
            f"[libdefaults]\n default_realm = {NAME}\n dns_lookup_kdc = false\n"
            " dns_lookup_realm = false\n rdns = false\n dns_canonicalize_hostname = false\n"
            " udp_preference_limit = 1\n"
            f"[realms]\n {NAME} = {{\n  kdc = 127.0.0.1:{self.port}\n }}\n"
            f"[domain_realm]\n localhost = {NAME}\n"
        )
        (self.folder / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{self.port}\n"
            f" kdc_tcp_listen = 127.0.0.1:{self.port}\n"
            f"[realms]\n {NAME} = {{\n  database_name = {self.folder}/principal\n"
            f"  key_stash_file = {self.folder}/stash\n  acl_file = {self.folder}/acl\n"
            "  max_life = 1h\n  supported_enctypes = aes256-cts-hmac-sha1-96:normal\n }\n"
        )


@contextmanager
def kerberos_realm(folder: Path, *principals: str) -> Iterator[Realm]:
    """A running KDC with these principals, and the one of a broker on localhost."""
    realm = Realm(folder, free_ports(1)[0])
    realm.create()
    realm.add(SERVICE, *principals)
    before = os.environ.get("KRB5_CONFIG")
    kdc = realm.launch()
    os.environ["KRB5_CONFIG"] = str(realm.krb5_conf)
    try:
        wait_for(realm.answers, START_S, "the KDC")
        yield realm
    finally:
        if before is None:
            del os.environ["KRB5_CONFIG"]
        else:
            os.environ["KRB5_CONFIG"] = before
        kdc.terminate()
        kdc.wait()


def need_gssapi() -> None:
    if find_spec("gssapi") is None:
        skip_without("the Python package gssapi is missing: make setup, with libkrb5-dev installed")
