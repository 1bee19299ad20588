"""The Java that Spark runs on: looked for before it is started, and its warnings sifted.

Owns: starting Spark's Java process, the error of a machine without Java, and which lines of a
starting Spark are nobody's concern. Never: hides a line that is not listed here.

Spark's launcher, its logger and pandas write a dozen lines to standard error before the first query
runs. None is about the pipeline, and some are written before any setting is read. The standard
error of Java, and of the Python processes that Spark starts, is therefore a pipe to a thread of
ours, which passes on the rest.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Final

from ottla.model.errors import UserError

NEEDED: Final = (
    "pipelines run on Spark, which needs Java 17 or newer: install it "
    "(Debian, as root: apt-get install default-jre-headless), or set JAVA_HOME to where it is"
)
STARTED: Final = "PYSPARK_GATEWAY_PORT"
"""In the environment of a driver that spark-submit has started: there is a Java process already."""
OF_PANDAS: Final = "PySpark does not yet fully support pandas"
FOR_PYTHON: Final = f"ignore:{OF_PANDAS}:FutureWarning"
"""What Spark's Python processes would say of the pandas that its own requirements allow."""
NOISE: Final = tuple(
    re.compile(pattern.encode())
    for pattern in (
        r"^WARNING: Using incubator modules: jdk\.incubator\.vector$",
        r"^Using Spark's default log4j profile: ",
        r"^Setting (default|Spark) log level to ",
        r"^To adjust logging level use sc\.setLogLevel",
        r"WARN Utils: Your hostname, .* resolves to a loopback address",
        r"WARN Utils: Set SPARK_LOCAL_IP if you need to bind to another address",
        r"WARN NativeCodeLoader: Unable to load native-hadoop library",
        f"FutureWarning: {OF_PANDAS}",
        r"^  require_minimum_pandas_version\(\)$",  # the line of source that Python shows with it
    )
)


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


def is_noise(line: bytes) -> bool:
    """Whether a line says nothing to whoever runs a pipeline."""
    return any(pattern.search(line) for pattern in NOISE)


def hush_python(environment: MutableMapping[str, str]) -> None:
    """Have Python processes that are started from here on say nothing of pandas."""
    told = environment.get("PYTHONWARNINGS", "")
    if FOR_PYTHON not in told:
        environment["PYTHONWARNINGS"] = f"{told},{FOR_PYTHON}" if told else FOR_PYTHON


def launch(settings: Mapping[str, str]) -> None:
    """Start the Java process of this process's Spark, without the noise; UserError if it ends."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return
    if STARTED not in os.environ:
        check_java(os.environ)
    hush_python(os.environ)
    conf = SparkConf().setAll(list(settings.items()))
    read_end, write_end = os.pipe()
    passing = threading.Thread(target=_pass_on, args=(read_end,), name="ottla-stderr", daemon=True)
    passing.start()
    try:
        gateway = launch_gateway(conf, {"stderr": write_end})  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as failure:
        if failure.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise UserError(f"Spark's Java process ended at once; {NEEDED}") from None
    finally:
        os.close(write_end)  # the thread ends when the last who has inherited it does
    SparkContext._ensure_initialized(gateway=gateway)


def _pass_on(read_end: int) -> None:
    with os.fdopen(read_end, "rb") as lines, os.fdopen(os.dup(2), "wb", 0) as out:
        for line in lines:
            if not is_noise(line.rstrip()):
                out.write(line)
