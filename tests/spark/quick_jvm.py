"""How a JVM that lives for seconds is started: one compiler, one collector, nothing to warm up."""

from __future__ import annotations

from typing import Final

QUICK: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
QUICK_JAVA: Final = {"JDK_JAVA_OPTIONS": QUICK}
"""In the environment of a process: every Java that it starts is told so."""
QUICK_SPARK: Final = {
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
    "spark.executor.memory": "512m",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
}
