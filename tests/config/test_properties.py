from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.properties import from_environment, from_sets, load, parse, read_file
from ottla.model.errors import UserError

FILE = r"""
# a comment
! another
broker.id=3
  log.dirs = /a,\
             /b
num.partitions : 4
delete.topic.enable false
zookeeper.connect=one\:2181,two:2181/path=with#signs
broker.rack=caf\u00e9\tcorner
broker.rack.twice=1
broker.rack.twice=2
key\ with\ spaces=x
empty=
alone
windows=C\:\\data
"""


def test_a_properties_file_is_read_as_java_reads_it() -> None:
    assert parse(FILE) == {
        "broker.id": "3",
        "log.dirs": "/a,/b",
        "num.partitions": "4",
        "delete.topic.enable": "false",
        "zookeeper.connect": "one:2181,two:2181/path=with#signs",
        "broker.rack": "café\tcorner",
        "broker.rack.twice": "2",
        "key with spaces": "x",
        "empty": "",
        "alone": "",
        "windows": "C:\\data",
    }


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_end_is_understood(end: str) -> None:
    assert parse(f"a=1{end}# no{end}b=2\\{end}3") == {"a": "1", "b": "23"}


def test_a_file_may_end_in_the_middle_of_a_continued_line() -> None:
    assert parse("a=1\\") == {"a": "1"}


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    parse(text)


def test_the_command_line_wins_over_the_environment_which_wins_over_the_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "server.properties"
    path.write_text("num.partitions=1\nbroker.id=1\nlog.dirs=/file\n")
    loaded = load(
        path,
        environment={"OTTLA_BROKER_ID": "2", "OTTLA_LOG_DIRS": "/environment", "HOME": "/root"},
        sets=["log.dirs=/line", "listeners = PLAINTEXT://:0"],
    )
    assert loaded.config.num_partitions == 1
    assert loaded.config.broker_id == 2
    assert loaded.config.data_dirs == ("/line",)
    assert loaded.texts["listeners"] == "PLAINTEXT://:0"
    assert loaded.warnings == []


def test_the_environment_spells_names_in_capitals() -> None:
    environment = {"OTTLA_LOG_DIRS": "/a", "PATH": "/bin", "OTTLA_CACHE": "/tmp"}
    environment["OTTLA_BOOTSTRAP_SERVER"] = "for:9092"
    assert from_environment(environment) == {"log.dirs": "/a"}


@pytest.mark.parametrize("item", ["log.dirs", "=x", " =x", ""])
def test_a_set_without_key_or_value_is_refused(item: str) -> None:
    with pytest.raises(UserError, match="expected key=value"):
        from_sets([item])


def test_a_set_keeps_later_equal_signs() -> None:
    assert from_sets(["a=b=c"]) == {"a": "b=c"}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere.properties"
    with pytest.raises(UserError, match=r"nowhere.properties: No such file"):
        read_file(missing)
    garbage = tmp_path / "garbage.properties"
    garbage.write_bytes(b"a=\xff")
    with pytest.raises(UserError, match=r"garbage.properties: byte 2 is not UTF-8"):
        read_file(garbage)


def test_a_bad_value_in_a_file_is_refused_naming_the_key(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("num.partitions=lots\n")
    with pytest.raises(UserError, match=r"^num.partitions='lots'"):
        load(path)


def test_an_unknown_key_is_a_warning_with_the_nearest_name() -> None:
    loaded = load(sets=["log.retension.hours=1"])
    assert loaded.warnings == [
        "log.retension.hours has no effect: unknown setting; did you mean log.retention.hours?"
    ]
    assert loaded.config.log_retention_hours == 168


@pytest.mark.spec("SEC-10")
@pytest.mark.parametrize(
    ("more", "count"),
    [((), 1), (("zookeeper.set.acl=true",), 0), (("sasl.enabled.mechanisms=PLAIN",), 0)],
)
def test_credentials_that_everybody_may_read_in_zookeeper_are_remarked_on(
    more: tuple[str, ...], count: int
) -> None:
    sets = [
        "zookeeper.connect=localhost:2181",
        "listeners=SASL_PLAINTEXT://:9092",
        "security.inter.broker.protocol=SASL_PLAINTEXT",
        "sasl.enabled.mechanisms=SCRAM-SHA-512",
        *more,
    ]
    warnings = [line for line in load(sets=sets).warnings if "zookeeper.set.acl=false" in line]
    assert len(warnings) == count
