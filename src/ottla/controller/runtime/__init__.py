"""The acting half of the controller: elections, queues, store access, requests to brokers.

- `loop`                 the controller's task: election, event queue, epoch fencing
- `event_queue`          events in order; those that met conflicts are put back
- `controller_election`  how one broker becomes the active controller
- `store_reader`         reads the store and turns it into events
- `fenced_writer`        store writes, fenced by the controller epoch
- `broker_requests`      effects to request frames, replies to events
- `request_queue`        the requests that wait for one broker, merged where that is safe
- `outbox`               sends each broker its requests, in order
- `forwarding`           requests to the active controller from other brokers
- `pending_requests`     requests that wait for the controller's reply
- `metadata_waiter`      waits until the metadata cache shows a change
- `metrics`              controller metrics
"""
