"""What keeps the project honest; nothing here is installed with the package.

- `environment`  makes `.venv` and names what the machine lacks (standard library only)
- `tidy`         the checks that linters do not know, `tidy_tree` those over the whole tree
- `compat`       writes `docs/compat.md` from the tables of APIs and settings
- `coverage`     writes `docs/coverage.md` from the `spec` marks of the tests
- `demo`         what `make run` shows
- `kafka_cache`  Apache Kafka's own jars, fetched once
- `nodes`        one broker as a process, ours or Apache Kafka's
"""
