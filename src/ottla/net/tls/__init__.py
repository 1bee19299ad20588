"""TLS inside our own connections, accepted and outgoing ones alike.

- `connection`  the protocol between a socket and a connection: handshake, decryption
- `sender`      encryption of what is sent, with bounded ciphertext in memory
- `failures`    why a handshake failed, in words that name the cause

asyncio's own TLS is not used: it hides connections from the limits until their handshake is done,
and fixes one `SSLContext` for each listening socket. Imports nothing of `security`: the owner of a
connection hands in a function that makes the `SSLObject`.
"""
