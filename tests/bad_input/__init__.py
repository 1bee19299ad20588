"""Everything a peer or an operator may get wrong, line by line, against a live broker.

- `conftest`     one broker for all of it, on a clock that can be moved on
- `batches`      record batches with one thing wrong
- `test_wire`    frames: sizes, headers, lengths, peers that stall
- `test_produce` record sets, and the error each must be refused with
- `producers`    transactional producers that say exactly what a test wants them to say
- `test_others`  the other APIs
- `test_groups`, `test_transactions`  what members and producers get wrong, and late packets
- `test_config`  settings and the command line: exit code 2, naming the key
"""
