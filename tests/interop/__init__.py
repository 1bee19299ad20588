"""Other people's clients and tools against a broker: they are the judge.

- `series`             the records everybody writes and reads, and their digest
- `client`             what a client is asked to do here; one adapter a client beside it:
                       `confluent_client`, `kafka_python_client`, `aiokafka_client`, `kcat_client`,
                       `java_client` (with `java/InteropDriver.java`)
- `test_every_client`  the same promises for every client
- `test_kafka_tools`   Kafka's command-line tools
- `members/`, `churn`  members of groups as programs, and the story they are put through
- `test_group_churn`, `test_groups`, `test_transactions`  what each client does with coordinators
- `tools_in_one`, `test_group_tools`, `test_transaction_tools`  Kafka's tools on groups and
                       transactions, in one virtual machine

The broker is Ottla; `OTTLA_INTEROP_TARGET=kafka` runs the same tests against Apache Kafka, which
shows that they ask for Kafka's behaviour and not for ours. `docs/clients-matrix.md` is the table
of what each client shows.
"""
