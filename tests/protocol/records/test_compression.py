"""The way to the codecs."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from ottla.protocol.records.compression import Codec, compress, decompress
assert decompress(Codec.NONE, compress(Codec.NONE, b"x"), 1) == b"x"
assert "cramjam" not in sys.modules
assert decompress(Codec.GZIP, compress(Codec.GZIP, b"x"), 1) == b"x"
assert "cramjam" in sys.modules
"""


def test_codecs_are_loaded_with_the_first_data_under_one() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)
