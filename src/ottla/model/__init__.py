"""The words of the domain: ids, errors, clocks, metrics, memory.

Imports nothing else of ours. Everything above may import it.

- `ids`      what things are called: brokers, partitions, epochs, offsets
- `errors`   Kafka errors, disconnects and user errors
- `clock`    time for waiting and time for stamping
- `metrics`  numbers that others may read
- `memory`   a pool of buffers that are reused
"""
