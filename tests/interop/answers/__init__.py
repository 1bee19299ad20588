"""The same exchanges with Apache Kafka and with Ottla, their replies compared field by field.

- `scenario`     what an exchange and a scenario are, and the words they are written with
- `of_…`         the scenarios, one module for each area; add one there (`of_brokers`: with 3.9)
- `playing`      both brokers, started; an Apache Kafka 3.9 for what 4.x removed
- `side`         a connection that sends exactly what it is told
- `plain`        a reply as plain data, without what must differ (ids, ports, times)
- `compare`      where two replies differ
- `running`      scenarios played to both sides
- `differences`  differences that are meant, each with its reason
- `summary`      counts for each API, and `docs/answers.md`
"""
