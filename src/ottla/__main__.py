"""`python -m ottla` is the `ottla` program."""

from ottla.cli.main import main

if __name__ == "__main__":
    main()
