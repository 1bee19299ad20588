"""Clients by mechanisms: what each logs in with, and what it is told when it is refused.

- `cells`    the table: clients, mechanisms, faults, what a client cannot do and why
- `site`     a broker, Ottla or Apache Kafka, with a listener for every cell, and a KDC
- `python_clients`, `kcat`, `java`, `spark_connector`  how each client does a cell
- `outcomes.json`  what the clients get from Apache Kafka
- `record`   writes that file: `python -m tests.interop.security.record`

`tests/interop/test_security_matrix.py` deals every login and every refusal to one client or another
for `make test`; `make soak` runs all cells, also against Apache Kafka. `docs/security-matrix.md` is
the table. `tests/spark/test_security_matrix.py` has the cells of Spark's connector.
"""
