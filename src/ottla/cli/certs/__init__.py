"""`ottla certs`: certificates for development.

- `make`  an authority, a broker and clients, in one directory
"""
