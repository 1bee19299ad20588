"""The network: frames in, replies out, in order, with bounds. It knows nothing of what they mean.

- `listener`         one end point: accepts, stops gracefully
- `channel`          one connection on the event loop: reads, turns, sends, ends
- `connection`       pure: requests in order, replies in order, how many at a time
- `slot`             one request's place among the replies; who sent it
- `inbox`, `buffers` pure: bytes to frames in place; the memory they are read into
- `admission`        pure: how much memory requests may take, and who waits for some
- `reply_memory`     pure: how much of it replies take that peers have not read
- `writer`, `wires`  replies to bytes; what bytes and files leave through
- `run_queue`        whose turn it is; the control plane first
- `network`          what all listeners share: limits, counts, the sweep
- `limits`, `census` the bounds; who is connected, in numbers
- `newcomers`, `creation_rate`  who may connect now, who waits; how fast that may be
- `complaints`, `strangers`  one bounded log line for each peer that broke the rules
- `request_metrics`  where the time of requests went
- `peer`, `replies`  a connection to another broker; bytes to replies that may be kept (pure);
                     `bulk`: large ones, received by a thread

Imports `model`. It is handed a clock, a registry of metrics and the function that answers.
"""
