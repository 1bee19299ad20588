"""The consumer: from brokers' bytes to a user's records.

Two faces, `sync` and `aio`, stand on one `core`, which runs on an event loop. Decisions are in the
modules without a loop; the loops send requests and bring what they learn to a user's poll.

faces
- `sync`, `aio`      `ottla.Consumer` and `ottla.aio.Consumer`
- `face`             what both are made from, and records in the middle of an iteration
- `building`         options to parts
- `errands`          how user code gets back to the user's thread
- `ownership`        one user at a time
- `choosing`, `placing`, `committing`, `taking`   what each public call does
- `core`             the parts, and what a poll waits for

what is read
- `subscription`     topics, a pattern, or partitions by hand (pure)
- `partition`        one assigned partition: its position (pure)
- `resets`           where to begin (pure)
- `lookup`           asking brokers where offsets lie
- `position_loop`    finding each partition its place
- `watch`            keeping up with the cluster

fetching
- `fetcher`          requests under way to each broker
- `shares`           which partitions each of them asks for (pure)
- `arrivals`         what the answer for a partition leads to
- `fetch_session`    what a broker has been told (pure)
- `fetch_reply`      the reply, taken apart in place (pure)
- `chunk`, `buffer`  what has arrived and was not read
- `rows`, `records`  batches to records (pure)
- `columns`          batches to Arrow
- `interceptors`     what a user puts in between

the group
- `assignors`        who of a group reads what (pure)
- `wording`          what members tell each other (pure)
- `classic`, `classic_loop`   a member of a classic group: what it says and does; doing it
- `modern`, `modern_loop`     the same where the broker deals out (KIP-848)
- `solo_loop`        a consumer without a group
- `group`            what the rest needs of any of them
- `gate`             work that waits for a poll
- `rebalance`, `listener`     partitions that change hands, and who is told
- `reactions`        what each refusal leads to (pure)
- `commit_queue`, `commit_loop`  commits in their order: which; sending them
- `errors`           what can go wrong for a consumer only
"""
