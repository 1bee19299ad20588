"""The words of the domain: ids, errors, clocks, metrics, memory.

Imports nothing else of ours. Everything above may import it.

- `ids`      ids of brokers, topics and partitions, epochs, offsets
- `errors`   Kafka errors, disconnects and user errors
- `clock`    monotonic time for timeouts, wall time for timestamps
- `metrics`  counters, gauges and histograms
- `memory`   a pool of buffers that are reused
- `kio_import` kio without Hypothesis
- `text`     text that others chose, made safe to show
- `tuples`   named tuples without the cost of their constructors
"""
