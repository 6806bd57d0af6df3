"""Terminal output: messages, logging, progress bars, diagnoses, the output of a wrapped command.

Commands write data to stdout (`emit`) and everything else to stderr (`say`).
"""

import sys


def say(message: str) -> None:
    """Print a message for the user to stderr."""
    print(message, file=sys.stderr, flush=True)


def emit(text: str) -> None:
    """Write data to stdout, ending with a newline."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()
