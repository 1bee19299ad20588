"""Waiting: requests that cannot be answered yet, and what must happen later.

- `wheel`      pure: a hierarchical timing wheel, O(1) to add, cancel and expire
- `timers`     a wheel advanced by the event loop, with one pending wake-up at a time
- `slices`     long work in slices, with turns of the loop in between
- `purgatory`  operations that wait for a condition or a timeout, watched by key
- `rates`      pure: Kafka's sampled rates and token bucket, and the delays that follow from them

Imports `model` only. Nothing here takes a lock: everything runs on the one event loop.
"""
