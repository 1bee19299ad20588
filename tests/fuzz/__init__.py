"""Mutated requests: valid ones of every API and version, and what becomes of them.

- `requests`     valid frames, made from the messages' own declarations
- `mutations`    what a bad client, a bad network or an attacker makes of them
- `decoding`     a process that decodes mutated frames, because a fault in native code would end it
- `test_decoding` that process ends well, and its memory stays small

Live brokers are fuzzed in `tests/cluster/test_fuzz.py`.
"""
