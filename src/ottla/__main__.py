"""`python -m ottla` is the `ottla` program.

SIGINT ends the process quietly from the first line on: what follows takes a tenth of a second to
import, and Ctrl-C in that time would be a traceback. The import of `ottla` itself is kept small.
"""

# Built in: the module around it takes 10 ms to import.
import _signal as signal  # type: ignore[import-not-found]

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from ottla.cli.main import main

if __name__ == "__main__":
    main()
