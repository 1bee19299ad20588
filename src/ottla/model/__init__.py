"""The words of the domain: ids, errors, clocks, metrics, memory.

Imports nothing else of ours. Everything above may import it.

- `ids`      what things are called: brokers, partitions, epochs, offsets
- `errors`   how a refusal, and a connection that must end, are said
- `clock`    time for waiting and time for stamping
- `metrics`  numbers that others may read
- `memory`   memory that is used again once nobody looks at it
"""
