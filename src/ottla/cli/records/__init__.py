"""Lines to records and records to lines: what `produce` and `consume` read and show.

- `drafts`   lines of text or JSON to records that can be sent
- `shown`    records to lines: text, JSON, hexadecimal, as they are
- `wanted`   which records are shown
- `sending`  drafts to a producer, as fast as it takes them, failures counted
- `reading`  where a consumer begins and ends
- `printing` records to stdout, and committing exactly what was
- `termination`  SIGTERM as a good end of reading
"""
