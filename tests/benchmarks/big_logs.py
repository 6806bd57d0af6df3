"""What the largest logs cost: seconds of CPU and memory for each hostile kind of 10 MiB.

    TRIAGE_DATABASE_URL=… python -m tests.benchmarks.big_logs [--mib 10] [--limit-s 1.5] [kind …]

Each kind is made here, read as the body of a request and diagnosed against the base of TRIAGE_DATABASE_URL, in a
process of its own that has answered a small log before and gives memory back as a worker does. Prints a Markdown table: CPU seconds of the process (not of
the clock, so other work on the machine matters little), and by how many MiB its memory grew over that of the body at
the highest (Linux only; elsewhere a dash). It exits 1 if a kind takes more CPU than `--limit-s`.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.config import LOG_LIMIT_BYTES, load_settings
from app.knowledge.diagnosis.diagnose import diagnose
from app.server.run import give_memory_back
from app.store.session import open_store
from app.web.body import TEXT_TYPE, RawBody, parse_body

MIB = 1 << 20
_ME = Path("/proc/self")

CRASH = (
    "(EngineCore_DP0 pid=7) ERROR 04-01 12:00:00 [core.py:396] Traceback (most recent call last):\n"
    '(EngineCore_DP0 pid=7) ERROR 04-01 12:00:00 [core.py:396]   File "/opt/vllm/v1/worker/gpu_worker.py", line 9, in load\n'
    "(EngineCore_DP0 pid=7) ERROR 04-01 12:00:00 [core.py:396] KeyError: 'layers.0.bias'\n"
)
REQUEST = '(APIServer pid=3) INFO:     10.0.0.9:4242 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'


def repeated(unit: str) -> Callable[[int], str]:
    """A text of one piece again and again."""
    return lambda chars: unit * (chars // len(unit) + 1)


def numbered(unit: str) -> Callable[[int], str]:
    """The same with a number in each piece, so that no two are equal."""
    return lambda chars: "".join(
        unit.format(at, at % 256) for at in range(chars // len(unit.format(0, 0)) + 1)
    )


def noise_with_crash(chars: int) -> str:
    """A day of requests around one crash."""
    half = repeated(REQUEST)(chars // 2)
    return half + CRASH + half


def base64(chars: int) -> str:
    """Random characters of base64 in lines of 76."""
    dice = random.Random(7)
    line = "".join(dice.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", k=76_000))
    return repeated("\n".join(line[at : at + 76] for at in range(0, len(line), 76)) + "\n")(chars)


def docker_json(chars: int) -> str:
    """The crash and requests as docker's json-file driver keeps them."""
    lines = (REQUEST * 20 + CRASH).splitlines(keepends=True)
    found = "".join(
        json.dumps({"log": line, "stream": "stderr", "time": "2026-04-01T12:00:00.123456789Z"}) + "\n"
        for line in lines
    )
    return repeated(found)(chars)


def nested(chars: int) -> str:
    """JSON lines, each a hundred objects deep."""
    return repeated('{"a":' * 100 + '"ERROR x"' + "}" * 100 + "\n")(chars)


KINDS: dict[str, Callable[[int], str]] = {
    "requests around a crash": noise_with_crash,
    "crashes, nothing else": repeated(CRASH),
    "tracebacks, each another": numbered(
        'Traceback (most recent call last):\n  File "/opt/vllm/v1/worker/m{0}.py", line 9, in f\n    g()\nValueError: bad shape {0}\n'
    ),
    "error lines": numbered("ERROR 04-01 12:00:00 [core.py:396] ValueError: shape {0}\n"),
    "chained errors": numbered(
        'Traceback (most recent call last):\n  File "/a/b{0}.py", line 1, in f\nKeyError: {0}\n\n'
        "During handling of the above exception, another exception occurred:\n\n"
    ),
    "line feeds": repeated("\n"),
    "carriage returns": repeated("\r"),
    "both line ends": repeated("\r\n"),
    "lines of one character": repeated("x\n"),
    "blanks": lambda chars: " " * (chars - 1) + "x",
    "one line": repeated("token "),
    "one word": repeated("x"),
    "colours": repeated("\x1b[0m"),
    "coloured lines": repeated(
        "\x1b[1;36m(EngineCore_DP0 pid=9)\x1b[0;0m ERROR 03-14 09:26:53 [core.py:842] no\n"
    ),
    "zero bytes": lambda chars: "\x00" * (chars // 5) + "x" * (chars - chars // 5),
    "emoji": repeated("\U0001f525 ERROR \U0001f9e8\n"),
    "Chinese": repeated("引擎进程启动失败，请检查日志。\n"),
    "one emoji in ASCII": lambda chars: "\U0001f525\n" + noise_with_crash(chars),
    "combining signs": repeated("e\u0301\u0302\u0303"),
    "nested JSON lines": nested,
    "docker's JSON lines": docker_json,
    "Kubernetes": repeated(
        "2026-03-14T09:26:53.589793238Z stdout F "
        + REQUEST
        + "2026-03-14T09:26:53.589793238Z stderr F "
        + CRASH
    ),
    "secrets": numbered("HF_TOKEN=hf_{0:030d}\n"),
    "named secrets": numbered("api_key='v{0}x{1}abc'\n"),
    "e-mail addresses": numbered("u{0}@b.org "),
    "addresses of hosts": numbered("10.0.{1}.7 "),
    "addresses with ports": numbered("ip=10.{1}.2.3:8000, /home/u{0}/x\n"),
    "base64": base64,
    "flattened log": repeated(CRASH.replace("\n", " ")),
    "environment lines": repeated("[pip3] torch==2.1\nPyTorch version: 2.1\n"),
    "quotes": repeated("> " * 40 + "ValueError: no\n"),
    "boxes": repeated("│ /opt/vllm/v1/worker/gpu_worker.py:9 in load                              │\n"),
    "wrappers": repeated(
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
    ),
    "native faults": repeated(
        "CUDA error: an illegal memory access was encountered\nterminate called after throwing\n"
    ),
    "settings": repeated(
        "vllm serve org/model-7b --tensor-parallel-size 2 --max-model-len 4096 VLLM_USE_V1=0\n"
    ),
    "names of models and GPUs": repeated(
        "meta-llama/Llama-3-8B on NVIDIA H100 80GB with vllm 0.9.1 FLASH_ATTN fp8\n"
    ),
}
"""Texts by what they are made of, each for a number of characters."""


def body_of(kind: str, size_bytes: int) -> bytes:
    """A log of the kind, in UTF-8, of at most so many bytes; its last sign is none of those that are cut away."""
    content = KINDS[kind](size_bytes)[:size_bytes].encode()
    return content[: size_bytes - 1].decode(errors="ignore").encode() + b"x"


def memory_kib(field: str) -> int | None:
    """`VmRSS` or `VmHWM` of this process."""
    try:
        lines = (_ME / "status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{field}:")), None)


def measure() -> dict[str, float | str | None]:
    """Read and diagnose the log that stands in the standard input."""
    give_memory_back()
    settings = load_settings()
    store = open_store(settings.database_url)
    diagnose(store, CRASH, repos=settings.repo)
    content = sys.stdin.buffer.read()
    before = memory_kib("VmRSS")
    if before is not None:
        (_ME / "clear_refs").write_text("5", encoding="ascii")
    began = time.process_time()
    fields = parse_body(RawBody(TEXT_TYPE, content))
    answer = diagnose(store, fields["log"], repos=settings.repo)
    seconds = time.process_time() - began
    peak = memory_kib("VmHWM")
    store.close()
    extra = (peak - before) / 1024 if peak is not None and before is not None else None
    return {"cpu_s": seconds, "extra_mib": extra, "verdict": answer.verdict}


def in_a_process(content: bytes) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.benchmarks.big_logs", "--one"]
    done = subprocess.run(command, input=content, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mib", type=float, default=LOG_LIMIT_BYTES / MIB)
    parser.add_argument("--limit-s", type=float, default=1.5)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("kinds", nargs="*", help="only these")
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measure()))
        return
    slow = []
    print("| kind | MiB | CPU, s | memory, MiB | verdict |\n|---|---|---|---|---|", flush=True)
    for kind in asked.kinds or KINDS:
        content = body_of(kind, int(asked.mib * MIB))
        found = in_a_process(content)
        extra = "–" if found["extra_mib"] is None else f"{found['extra_mib']:.0f}"
        print(
            f"| {kind} | {len(content) / MIB:.1f} | {found['cpu_s']:.2f} | {extra} | {found['verdict']} |",
            flush=True,
        )
        if found["cpu_s"] > asked.limit_s:
            slow.append(kind)
    sys.exit(f"over {asked.limit_s} s: {', '.join(slow)}" if slow else 0)


if __name__ == "__main__":
    main()
