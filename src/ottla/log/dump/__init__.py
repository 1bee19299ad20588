"""Prints the contents of a partition's files: `ottla log dump`.

- `dump`          chooses the reader for each file
- `segment_dump`  `.log` files: batches, and records on request
- `index_dump`    index files, checked against the log
- `rows`          the rows and errors a dump consists of, and their text form
"""
