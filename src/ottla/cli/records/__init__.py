"""Lines to records and records to lines: what `produce` and `consume` read and show.

- `parsing`  lines of text or JSON to records that can be sent
- `formatting` records to lines: text, JSON, hexadecimal, as they are
- `sending`  drafts to a producer, as fast as it takes them, failures counted
- `ranges`   where a consumer begins and ends
- `printing` records to stdout, and committing exactly what was
- `termination`  SIGTERM as a good end of reading
"""
