"""A client in one file, for where nothing can be installed: asks a triage server about a crash log.

    curl -sSO https://HOST/client.py
    python3 client.py [--url https://HOST] [--format text|json|markdown] [--vllm-version V] [FILE|-]

Only Python's standard library, 3.9 or newer. The server is `--url`, TRIAGE_URL, or the one it was fetched
from. Exit code as of `triage diagnose`: 0 for same and likely, 3 for related and unknown, 1 for an error, 2
for wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

HOME = ""
"""The address of the server that hands this file out; it fills it in."""
LIMIT_BYTES = 10 * 1024 * 1024
TIMEOUT_S = 60
TYPES = {"text": "text/plain", "json": "application/json", "markdown": "text/markdown"}
VERDICT = "X-Triage-Verdict"


class UnreadableError(Exception):
    """The log cannot be read; nobody was asked."""


def main() -> int:
    """Ask and print; the exit code."""
    parser = argparse.ArgumentParser(description="Ask a triage server about a vLLM crash log.")
    parser.add_argument("file", nargs="?", default="-", metavar="FILE|-")
    parser.add_argument("--url", default=os.environ.get("TRIAGE_URL") or HOME, help="the server")
    parser.add_argument("--format", choices=TYPES, default="text", help="output format")
    parser.add_argument("--vllm-version", default="", help="where the log does not say")
    asked = parser.parse_args()
    if not asked.url.startswith(("https://", "http://")):
        parser.error("--url or TRIAGE_URL must be an http:// or https:// address")
    try:
        return ask(asked.url.rstrip("/"), read(asked.file), asked.format, asked.vllm_version)
    except urllib.error.HTTPError as error:
        fault = f"{asked.url} refused with {error.code}: {_detail(error)}"
    except UnreadableError as error:
        fault = str(error)
    except (OSError, ValueError) as error:
        fault = f"{asked.url}: {getattr(error, 'reason', None) or error}"
    sys.stderr.write(f"triage: {fault}\n")
    return 1


def read(name: str) -> bytes:
    """The end of a log, as much as the server takes."""
    if name == "-":
        return sys.stdin.buffer.read()[-LIMIT_BYTES:]
    try:
        return Path(name).read_bytes()[-LIMIT_BYTES:]
    except OSError as error:
        raise UnreadableError(f"cannot read {name}: {error.strerror}") from None


def ask(url: str, log: bytes, form: str, version: str) -> int:
    """Print the server's answer to a log; the exit code that its verdict means."""
    query = f"?{urllib.parse.urlencode({'vllm_version': version})}" if version else ""
    headers = {"Content-Type": "text/plain", "Accept": TYPES[form], "User-Agent": "vllm-triage-client"}
    request = urllib.request.Request(f"{url}/api/v1/diagnose{query}", log, headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
        sys.stdout.write(reply.read().decode("utf-8", "replace").rstrip("\n") + "\n")
        return 0 if reply.headers.get(VERDICT, "") in {"same", "likely"} else 3


def _detail(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["detail"])[:300]
    except (ValueError, KeyError, TypeError):
        return str(error.reason)


if __name__ == "__main__":
    sys.exit(main())
