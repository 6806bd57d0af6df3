"""What the commands print: data to stdout, everything else to stderr."""

import sys


def say(message: str) -> None:
    """One line to the person, on stderr."""
    print(message, file=sys.stderr, flush=True)


def emit(text: str) -> None:
    """Data, on stdout, ended by a line end."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()
