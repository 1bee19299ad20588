"""A jar as a user brings one: a store that Hadoop reaches by `shop://`, compiled when it is asked
for. Its files lie on the local disk, below the path of the address."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pyspark

CLASS: Final = "shop.Store"
SOURCE: Final = """
package shop;

import java.net.URI;
import org.apache.hadoop.fs.RawLocalFileSystem;

public class Store extends RawLocalFileSystem {
    @Override public URI getUri() { return URI.create("shop:///"); }
    @Override public String getScheme() { return "shop"; }
}
"""


def store_jar(folder: Path) -> Path:
    """Made by the JDK's own tools, against the Hadoop that PySpark brings."""
    jars = Path(pyspark.__file__).parent / "jars"
    source, classes, made = folder / "Store.java", folder / "classes", folder / "store.jar"
    source.write_text(SOURCE)
    compile_it = ["javac", "--release", "17", "-cp", f"{jars}/*", "-d", classes, source]
    for command in (compile_it, ["jar", "-cf", made, "-C", classes, "."]):
        subprocess.run([*map(str, command)], check=True, capture_output=True, text=True)
    return made
