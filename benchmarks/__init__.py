"""What we promise about speed and size, measured side by side with Apache Kafka.

`make bench` runs `run` (`FULL=1` every scenario): Apache Kafka and Ottla in turns, on one machine,
with the same client programs. One file for each promise:

- `throughput`          produce and consume, MB/s and CPU seconds per GB
- `small_requests`      one-record requests a second, and the time of one
- `paired`              the same of two checkouts, in turns: is a change slower?
- `latency`             end to end at a fixed rate
- `start`               cold start to the first record read back, idle memory
- `partitions_10k`      ten thousand partitions: time to open, memory of each
- `testing_broker`      a broker inside a test process
- `compaction_latency`  a produce while a log is compacted
- `groups`              five thousand groups: the p99 of heartbeats and commits
- `transactions`        transactions a second, flushed before they are acknowledged
- `loading`             a million committed offsets read back after a restart
- `wire`, `log`, `net`  single layers, for work on them; Kafka has no part in these
- `cluster`             three brokers and three replicas: rate, latency, catching up, failover
- `tls`                 produce and consume over TLS, and in plaintext
- `logins`              clients that do not finish their handshake, and many logins at once
- `quotas`              what a throttled client gets, and that it slows nobody else down
- `failover`            three brokers: writes after a killed or stopped leader
- `columns`             records to columns and back
- `spark_io`            Spark to and from topics, beside its own connector and `spark_floor`,
                        a source and a sink of nothing
- `spark_growth`        the same with many partitions, and with more bytes than memory
- `pipeline_start`      the first batches of a pipeline with six sinks, and what Spark itself needs

And what they stand on: `contenders` (the brokers), `raw` and `frames` (the load driver on bare
sockets), `crowd` (thousands of conversations on such), `rdkafka` (librdkafka), `java` (Kafka's own
clients), `ceilings` (what the machine itself can do), `scenario` and `report` (medians, spread,
ratios, goals).

Nothing here is imported by the package.
"""
