"""OpenLineage events of a run, for catalogues of data.

- `run_events`  START, RUNNING, COMPLETE and FAIL, sent beside the run
- `datasets`    what a pipeline reads and writes, by OpenLineage's rules for names; pure
- `database_tables`  the tables that an SQL query reads; pure
"""
