"""The fast path of Produce: a small request is read, appended and answered in one step.

A producer that sends one small batch at a time repeats its last request byte for byte, except for
the correlation id, the partition and the records. Once such a request has been handled by the
general path (`api.produce`), `remember` makes a `FastProduce` the handler of that connection's
frames. It tries each frame and hands what it cannot do to the general handler, with nothing
changed. `net` calls a connection's handler and does not know which one it is.

What is skipped, and why that is safe:

- Decoding. `request_template` compares the frame with the remembered one: every byte outside the
  correlation id, the partition, the length and the records must be equal, so whatever the general
  decoder found in those bytes still holds. Lengths are checked again.
- Authorization. It is decided once, when the request is remembered; when any ACL changes, the
  `version` of the authorizer differs and the request is handled by the general path. A login
  replaces the handler of the connection, so the principal is that of the remembered request; an
  expired session is never remembered.
- The search for the quotas of the client. They are found once; when any quota changes, `version`
  differs and the request is handled by the general path, which remembers it again.
- The search for the topic's name by its id. The partition's log has the id of its topic, and a
  topic that was deleted and created again has another one.
- The analysis of the record set. `plain_batch` checks everything that `log.validate` checks of a
  batch, checksum included; a batch that would be refused, rewritten or stamped is declined.
- The decision whether a segment must be rolled and whether the producer's sequence is right. The
  same conditions are tested; where one does not hold, the batch is declined.
- Waiting. With acks=all a partition that has followers, too few in-sync replicas or a flush before
  the acknowledgement is declined, and so is one where an earlier batch is still being rewritten.

What is not skipped: the leader's epoch, limits of the topic's configuration in force now, counters,
the high watermark, and waking delayed fetches. Either a batch has been appended with all of these,
or nothing has happened. Errors are replied by the general path only.

Tests compare both paths on random requests and batches (`tests/api/fast_path`).
`benchmarks/small_requests.py` measures the gain.

- `produce`           the handler of a connection, and the append
- `request_template`  reads requests that repeat an earlier one, and writes their replies
- `plain_batch`       which batches need no decision
"""
