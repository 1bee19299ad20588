"""The Java that Spark runs on: looked for before it is started, and its output kept in a file.

Owns: starting Spark's Java process, the error of a machine without Java, and the file `spark.log`.

Spark's launcher, its logger and its Python workers write to standard error: a dozen lines before
the first query runs, a hundred for each failure, and tracebacks of processes that are told to stop.
A pipeline says what failed in one line of its own. The standard error of Java, and of the Python
processes that Spark starts, is therefore a pipe to a thread of ours, which writes it to a file.
Only what Ottla itself says in a worker is passed on: lines that begin with `ottla: `.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ottla.model.errors import UserError
from ottla.spark.pipelines.variables import mask

NEEDED: Final = (
    "pipelines run on Spark, which needs Java 17 or newer: install it "
    "(Debian, as root: apt-get install default-jre-headless), or set JAVA_HOME to where it is"
)
STARTED: Final = "PYSPARK_GATEWAY_PORT"
"""In the environment of a driver that spark-submit has started: there is a Java process already."""
OF_PANDAS: Final = "PySpark does not yet fully support pandas"
FOR_PYTHON: Final = f"ignore:{OF_PANDAS}:FutureWarning"
"""What Spark's Python processes would say of the pandas that its own requirements allow."""
LOG: Final = "spark.log"
MAX_LOG_BYTES: Final = 10_000_000
"""A larger file becomes `spark.log.1`, in place of the one before."""
OURS: Final = b"ottla: "
SPARK_HOME: Final = "SPARK_HOME"
PYTHON: Final = "PYSPARK_PYTHON"
OTHER_PYTHON: Final = "spark.pyspark.python"
PARTS_OF_HOME: Final = ("bin", "conf", "jars", "sbin")


def check_java(
    environment: Mapping[str, str], find: Callable[[str], str | None] = shutil.which
) -> None:
    """UserError where Spark's launcher would find no Java; it looks at the same places."""
    home = environment.get("JAVA_HOME")
    if home:
        if not os.access(Path(home) / "bin" / "java", os.X_OK):
            raise UserError(f"JAVA_HOME is {home}, and there is no bin/java in it: {NEEDED}")
    elif find("java") is None:
        raise UserError(f"java is not installed: {NEEDED}")


class OutputLog:
    """Lines for people, and a file of bounded size for the rest."""

    def __init__(
        self, path: Path, to_people: Callable[[bytes], object], secrets: Sequence[str] = ()
    ) -> None:
        self._secrets = secrets
        self._path = path
        self._to_people = to_people
        self._file = path.open("ab")

    def write(self, line: bytes) -> None:
        if self._secrets:
            line = mask(line.decode(errors="replace"), self._secrets).encode()
        if line.startswith(OURS):
            self._to_people(line)
            return
        if self._file.tell() > MAX_LOG_BYTES:
            self._file.close()
            self._path.replace(self._path.with_name(f"{LOG}.1"))
            self._file = self._path.open("ab")
        self._file.write(line)
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def hush_python(environment: MutableMapping[str, str]) -> None:
    """Have Python processes that are started from here on say nothing of pandas."""
    told = environment.get("PYTHONWARNINGS", "")
    if FOR_PYTHON not in told:
        environment["PYTHONWARNINGS"] = f"{told},{FOR_PYTHON}" if told else FOR_PYTHON


def hush_pandas() -> None:
    """The same in this process: steps in Python declare functions of pandas here."""
    warnings.filterwarnings("ignore", OF_PANDAS, FutureWarning)


def launch(
    settings: Mapping[str, str], find_log: Callable[[], Path], secrets: Sequence[str] = ()
) -> None:
    """Start the Java process of this process's Spark; UserError if it ends."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return
    if STARTED not in os.environ:
        check_java(os.environ)
    hush_python(os.environ)
    conf = SparkConf().setAll(list(settings.items()))
    log = find_log()
    read_end, write_end = os.pipe()
    passing = threading.Thread(
        target=_pass_on, args=(read_end, log, secrets), name="ottla-stderr", daemon=True
    )
    passing.start()
    try:
        with compiled_workers(settings, os.environ):
            gateway = launch_gateway(conf, {"stderr": write_end})  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as failure:
        if failure.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise UserError(
            f"Spark's Java process exited while starting, see {log}; {NEEDED}"
        ) from None
    finally:
        os.close(write_end)  # the thread ends when the last who has inherited it does
    SparkContext._ensure_initialized(gateway=gateway)


@contextmanager
def compiled_workers(
    settings: Mapping[str, str], environment: MutableMapping[str, str]
) -> Iterator[None]:
    """Have Python processes of a Spark on this machine import the pyspark that is installed.

    Spark puts `python/lib/pyspark.zip` of its home before everything else on their path: sources,
    which each process compiles again, 0.2 CPU seconds. The home that Java is told of here has no
    such file. Elsewhere, or where somebody has chosen a home or another Python, it stays as it is.
    """
    import pyspark

    installed = Path(pyspark.__file__).parent
    is_ours = environment.get(PYTHON) == sys.executable and OTHER_PYTHON not in settings
    is_local = settings["spark.master"].startswith("local")
    if SPARK_HOME in environment or not (is_ours and is_local and installed.is_dir()):
        yield
        return
    home = Path(tempfile.mkdtemp(prefix="ottla-spark-home-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for name in PARTS_OF_HOME:
        if (installed / name).exists():
            (home / name).symlink_to(installed / name)
    environment[SPARK_HOME] = str(home)
    try:
        yield
    finally:
        del environment[SPARK_HOME]


def _pass_on(read_end: int, path: Path, secrets: Sequence[str]) -> None:
    with os.fdopen(read_end, "rb") as lines, os.fdopen(os.dup(2), "wb", 0) as out:
        log = OutputLog(path, out.write, secrets)
        for line in lines:
            log.write(line)
        log.close()
