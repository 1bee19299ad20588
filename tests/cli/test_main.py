from __future__ import annotations

import errno
import gc
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import ottla
from ottla.cli import main
from ottla.cli.records.formatting import Format
from ottla.testing import Broker
from tests.cli.ottla_program import Run

QUIET_IMPORTS = """
import sys
from ottla.cli.main import main
sys.argv = ["ottla", "serve", "--nonsense"]
try:
    main()
except SystemExit as done:
    assert done.code == 2
import ottla.broker.app
unwanted = {"typer", "pydantic", "rich", "hypothesis", "numpy", "cramjam", "isal", "re2"}
heavy = sorted(unwanted & set(sys.modules))
sys.exit(f"loaded {heavy}" if heavy else 0)
"""


def ottla_program(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ottla.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out == f"ottla {ottla.__version__}\n"


def test_a_broker_that_did_not_start_leaves_the_garbage_collector_on() -> None:
    assert gc.isenabled()
    assert main.run(["serve", "--nonsense"]) == 2
    assert gc.isenabled()


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("serve", "adopt", "log", "--version"))


def test_a_mistake_is_one_line_on_stderr_and_exit_code_2(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main.run(["serve", "--nonsense"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "ottla: serve: unrecognized arguments: --nonsense; see ottla serve --help\n"


@pytest.mark.parametrize("arguments", [["nonsense"], ["log", "nonsense"], ["--nonsense"]])
def test_an_unknown_command_is_exit_code_2(arguments: list[str]) -> None:
    assert main.run(arguments) == 2


def test_the_program_itself_exits_2_without_a_traceback() -> None:
    done = ottla_program("serve", "--listeners", "nonsense")
    assert done.returncode == 2
    assert done.stderr.startswith("ottla: listeners")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_stops_reading_causes_no_complaint() -> None:
    program = f"{sys.executable} -m ottla --help | true"
    done = subprocess.run(
        ["bash", "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr == ""


def test_a_broker_process_does_not_load_what_other_commands_need() -> None:
    done = subprocess.run(
        [sys.executable, "-c", QUIET_IMPORTS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_package_can_be_run_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ottla", "--version"], capture_output=True, text=True, check=False
    )
    assert done.stdout == f"ottla {ottla.__version__}\n"


def test_a_command_that_did_not_succeed_is_one_line_and_exit_code_1(run: Run) -> None:
    ran = run("topics", "alter", "nowhere", "--partitions", 2)
    ran.failed(1, "ottla: ")
    assert ran.err.count("\n") == 1


def test_an_interrupt_ends_as_shells_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(arguments: object, ready: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "_command", interrupted)
    assert main.run([]) == main.INTERRUPTED == 130


def test_a_reader_that_has_had_enough_ends_a_command_quietly(
    cli_broker: Broker, topic: str
) -> None:
    ottla = f"{sys.executable} -m ottla"
    words = f"{topic} --bootstrap-server {cli_broker.bootstrap_servers}"
    record = "r" * 1_000  # 400 of them are more than a pipe holds
    program = (
        f"yes {record} | head -n 400 | {ottla} produce {words} 2>/dev/null\n"
        f"{ottla} consume {words} | head -n 1"
    )
    done = subprocess.run(
        ["bash", "-c", program], capture_output=True, text=True, check=False, timeout=100
    )
    assert (done.stdout, done.stderr) == (f"{record}\n", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell: str) -> None:
    words = {"bash": "COMP_WORDS", "zsh": "_TYPER_COMPLETE_ARGS", "fish": "_TYPER_COMPLETE_ARGS"}
    environment = {
        **os.environ,
        "_OTTLA_COMPLETE": f"complete_{shell}",
        words[shell]: "ottla topics de",
        "COMP_CWORD": "2",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = subprocess.run(
        [sys.executable, "-m", "ottla.cli.main"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "delete" in done.stdout and "describe" in done.stdout, done.stderr


def test_completion_can_be_installed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--help"]) == 0
    assert "--install-completion" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("ottla", ["--help"]),
        ("ottla", ["topics", "list"]),
        ("ottla", ["topics", "describe"]),
        ("ottla", ["topics", "list", "--json"]),
        ("ottla", ["serve", "--help"]),
        ("ottla.cli.kafka.main", ["kafka-topics.sh", "--help"]),
    ],
)
def test_a_full_device_is_one_line(
    program: str, words: list[str], cli_broker: Broker, topic: str
) -> None:
    environment = {**os.environ, "OTTLA_BOOTSTRAP_SERVER": cli_broker.bootstrap_servers}
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = subprocess.run(
            [sys.executable, "-m", program, *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            check=False,
            timeout=60,
        )
    assert done.returncode == 1
    said = "ottla" if program == "ottla" else words[0]
    assert done.stderr == f"{said}: cannot write the output: No space left on device\n"


@pytest.mark.parametrize(
    ("form", "count", "group"),
    [*((form.value, 1, "") for form in Format), ("text", 2_000, ""), ("text", 1, "of-a-full")],
)
def test_records_for_a_full_device_are_one_line_and_not_committed(
    form: str, count: int, group: str, cli_broker: Broker, topic: str, admin: ottla.Admin
) -> None:
    """One record stays in a buffer until the end, 2,000 do not."""
    at = cli_broker.bootstrap_servers
    with ottla.Producer(bootstrap_servers=at) as producer:
        for _ in range(count):
            producer.send(topic, b"value", b"key", partition=0)
        producer.flush()
    words = ["consume", topic, "--format", form, "--bootstrap-server", at]
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = subprocess.run(
            [sys.executable, "-m", "ottla", *words, *(["--group", group] if group else [])],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 1
    assert done.stderr == "ottla: cannot write the output: No space left on device\n"
    if group:
        assert admin.list_group_offsets(group).all() == {}


def test_an_argument_or_variable_that_is_not_utf_8_is_one_line(
    monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    run("topics", "create", "caf\udce9").failed(2, "argument b'caf\\xe9' is not UTF-8")
    run("serve", "--data-dir", "caf\udce9").failed(2, "argument b'caf\\xe9' is not UTF-8")
    monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVER", "\udce9")
    run("topics", "list").failed(2, "OTTLA_BOOTSTRAP_SERVER b'\\xe9' is not UTF-8")


INTERRUPTIBLE = """
import signal
import ottla.__main__
from ottla.cli import main
print(signal.getsignal(signal.SIGINT).name)
main.raise_on_interrupt()
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
main.end_on_interrupt()
print(signal.getsignal(signal.SIGINT).name)
"""


def test_ctrl_c_while_the_program_loads_ends_it_without_a_traceback() -> None:
    def as_a_shell_starts_it() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTIBLE],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=as_a_shell_starts_it,
    )
    assert done.stdout.split() == ["SIG_DFL", "True", "SIG_DFL"]


TELL_WHEN_REACHED = """
import _signal, os, runpy, sys

set_handler = _signal.signal

def tell(number, handler):
    before = set_handler(number, handler)
    _signal.signal = set_handler
    os.write(1, b"reached\\n")
    return before

_signal.signal = tell
module = sys.argv[1]
sys.argv = [module, *sys.argv[2:]]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
KAFKA_COMMANDS = "ottla.cli.kafka.main"
NOWHERE = ["--bootstrap-server", "127.0.0.1:1"]


@pytest.mark.parametrize(
    "words",
    [
        ["ottla", "topics", "list"],
        ["ottla", "produce", "orders"],
        ["ottla", "serve"],
        [KAFKA_COMMANDS, "kafka-topics.sh", "--list", *NOWHERE],
        [KAFKA_COMMANDS, "kafka-console-producer.sh", "--topic", "orders", *NOWHERE],
    ],
    ids=" ".join,
)
def test_ctrl_c_in_the_first_tenth_of_a_second_shows_no_traceback(
    words: list[str], tmp_path: Path
) -> None:
    """From the moment on in which `python -m` has set what SIGINT does."""

    def as_a_shell_starts_it() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    environment = {**os.environ, "OTTLA_BOOTSTRAP_SERVER": "127.0.0.1:1"}
    environment["OTTLA_LISTENERS"] = "PLAINTEXT://127.0.0.1:0"
    for after_ms in (0, 10, 30, 50, 70, 90, 110, 130, 150):
        with subprocess.Popen(
            [sys.executable, "-c", TELL_WHEN_REACHED, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment,
            preexec_fn=as_a_shell_starts_it,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "reached\n"
            with suppress(subprocess.TimeoutExpired):
                process.wait(after_ms / 1000)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        assert "Traceback" not in said, (after_ms, said)
        interrupted = process.returncode in (-signal.SIGINT, main.INTERRUPTED, 0)
        assert interrupted or "cannot reach a broker" in said, (after_ms, said)


def test_the_installed_script_sets_what_ctrl_c_does_before_it_imports_anything() -> None:
    script = Path(__file__).parents[2] / "scripts" / "ottla"
    first, *_ = script.read_text().splitlines()
    assert first == "#!python"  # installers put their own Python there
    imported = [
        line for line in script.read_text().splitlines() if line.startswith(("import ", "from "))
    ]
    assert imported == ["import _signal", "from ottla.__main__ import main  # noqa: E402"]


def test_the_script_that_is_installed_runs() -> None:
    """Installers keep its mode: it must be executable where it comes from."""
    assert os.access(Path(__file__).parents[2] / "scripts" / "ottla", os.X_OK)
    installed = Path(sys.executable).with_name("ottla")
    done = subprocess.run([installed, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert ottla.__version__ in done.stdout


def test_the_package_imports_nothing_before_the_program_can_be_interrupted() -> None:
    program = (
        "import sys; before = set(sys.modules); import ottla\n"
        "print(sorted(set(sys.modules) - before))"
    )
    source = Path(ottla.__file__).resolve().parent.parent  # -S: no editable install
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['__future__', 'ottla']\n"


def test_an_error_of_the_system_names_the_file() -> None:
    missing = FileNotFoundError(errno.ENOENT, "No such file or directory", "gone")
    assert main.describe_os_error(missing) == "gone: No such file or directory"
    refused = ConnectionError("nobody answered")
    assert main.describe_os_error(refused) is refused
    assert main.describe_os_error(OSError(errno.EINVAL, "Invalid argument")) == "Invalid argument"
