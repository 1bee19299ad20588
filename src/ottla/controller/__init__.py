"""The controller: one broker at a time decides who leads each partition.

Decisions are pure functions of state and event; one loop performs them. May import `replica` and
what lies below it; never `api`, never a coordinator.

The decisions, from the words to the table of contents:

- `state`         brokers, topics, partitions, and the tables of legal moves
- `events`        everything that can happen
- `effects`       everything it may lead to: writes, requests, replies
- `batch`         what one event has to say, by broker
- `draft`         one event in the making: working copy and effects
- `machine`       event -> the function of its concern
- `start`         after winning the election
- `brokers`       brokers that come, go, return; lost log directories
- `topics`        new topics and partitions
- `topic_rules`   what they may be called and ask for
- `placement`     where replicas go
- `deletion`      topics on their way out
- `elections`     elections that were asked for, and the balance of leaders
- `shutdown`      a broker hands its leaders over
- `reassignment`  replicas that move
- `isr_changes`   what leaders wrote
- `partitions`    the partition state machine
- `replicas`      the replica state machine
- `election`      who leads now: four strategies
- `weight`        how many partitions an event concerns
- `writing`       store operations

- `internal_topics` how the system's own topics are made

The actions:

- `registration`  this broker's own node, its epoch, the cluster's id
- `office`        how one broker becomes the active controller
- `readings`      store -> events
- `writer`        writes, fenced by the controller's epoch
- `requests`      effects -> frames, replies -> events
- `outbox`        one ordered queue of requests per broker
- `loop`          the task: election, queue, fence
- `asks`          questions that wait for their answers
- `shown`         waiting until the metadata shows what was asked for
- `facade`        what the rest of the broker asks for
- `measures`      what can be read about a controller from outside
- `producer_ids`  blocks of producer ids
- `noted`         nodes whose changes are noted beside them
- `config_store`  settings in the store, written and heard
- `acl_store`     access rules, likewise
"""
