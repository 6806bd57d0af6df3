"""A failure as a server of several processes prints it today, made up around a real traceback.

Every worker tells the same traceback, their lines mixed; the engine core tells that a worker failed, the
API server that the engine core did; then come the words of processes that are being torn down.

Chance that falls alike on every machine and Python version: numbers out of a hash of seed and count.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import TypeVar

TRACEBACK = "Traceback (most recent call last):"
LINES_MAX = 120
SITE = "/usr/local/lib/python3.12/dist-packages/vllm/v1"

_CHAINED = re.compile(r"(?:During handling of|The above exception was)")
_ERROR = re.compile(
    r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|ExceptionGroup|Interrupt|Exit)\b|[\w.]+Error\b"
)
_HEAD = re.compile(
    r"^(?:[\w-]+ +\| )?(?:20\d\d-\d\d-\d\d[ T][\d:.,]+Z? ?(?:\| )?)?"
    r"(?:\(?\[?\w+[^)\]\n]{0,40}pid[=: ]\d+[^)\]]*[)\]]:? ?|\[rank\d+\]:\s?)*"
    r"(?:(?:INFO|WARNING|ERROR|CRITICAL)[: ]+[\d: -]{8,20}\[?[\w./]+:\d+\] ?)?(?:\[rank\d+\]: ?)?"
)


def cascade(lines: Sequence[str], dice: Dice) -> str:
    """The first traceback of these lines as a server of today would print it; empty if there is none."""
    story = first_traceback(lines)
    if not story:
        return ""
    error = story[-1]
    clock = Clock(dice)
    workers = dice.pick((0, 0, 2, 2, 4))
    told = [*_start(dice, clock, workers)]
    if workers:
        told += _workers(story, dice, clock, workers)
        story = _worker_failed(error)
    running = dice.below(3) == 0
    told += _core(story, clock, running)
    told += _server(clock, running)
    told += _noise(dice, clock)
    if dice.below(4) == 0:
        told = told[-dice.pick((45, 60, 80)) :]
    return "\n".join(told)


def first_traceback(lines: Sequence[str]) -> list[str]:
    """The first traceback without log prefixes, with what is chained to it, down to its error line."""
    bare = [_HEAD.sub("", line, count=1) for line in lines]
    start = next((at for at, line in enumerate(bare) if TRACEBACK in line), None)
    if start is None:
        return []
    margin = bare[start][: bare[start].index(TRACEBACK)]
    kept: list[str] = []
    end = 0
    for line in (line.removeprefix(margin) for line in bare[start : start + LINES_MAX]):
        if end and line.strip() and not _goes_on(line):
            break
        kept.append(line)
        if not line.startswith((" ", "\t")) and line.strip() != TRACEBACK and _ERROR.match(line):
            end = len(kept)
        elif _CHAINED.match(line):
            end = 0
    return kept[:end]


def _goes_on(line: str) -> bool:
    return bool(_CHAINED.match(line)) or line.strip() == TRACEBACK


class Clock:
    """Process ids and a time of day that moves on."""

    def __init__(self, dice: Dice) -> None:
        self._day = f"{dice.between(1, 12):02}-{dice.between(1, 28):02} {dice.below(24):02}"
        self._seconds = dice.below(2_000)
        self._dice = dice
        self.server = dice.between(40, 80_000)
        self.core = self.server + dice.between(60, 300)

    def now(self) -> str:
        """The time as a log prefix has it."""
        self._seconds += self._dice.below(5) == 0
        return f"{self._day}:{self._seconds // 60:02}:{self._seconds % 60:02}"


def _start(dice: Dice, clock: Clock, workers: int) -> list[str]:
    version = dice.pick(("0.13.0", "0.15.1", "0.17.0", "0.19.1", "0.21.0"))
    size = max(1, workers)
    server, core = f"(APIServer pid={clock.server})", f"(EngineCore_DP0 pid={clock.core})"
    return [
        f"{server} INFO {clock.now()} [api_server.py:1351] vLLM API server version {version}",
        (
            f"{server} INFO {clock.now()} [scheduler.py:216] Chunked prefill is enabled with "
            f"max_num_batched_tokens={dice.pick((2048, 8192, 16384))}."
        ),
        (
            f"{core} INFO {clock.now()} [core.py:97] Initializing a V1 LLM engine (v{version}) with config: "
            f"tensor_parallel_size={size}, pipeline_parallel_size=1, seed=0"
        ),
    ]


def _workers(story: Sequence[str], dice: Dice, clock: Clock, workers: int) -> list[str]:
    """The story of every worker; each keeps its order, all are mixed."""
    left = {rank: ["WorkerProc hit an exception.", *story] for rank in range(workers)}
    pids = {rank: clock.core + 40 + 9 * rank for rank in left}
    told = []
    while left:
        rank = dice.pick(sorted(left))
        for _ in range(min(len(left[rank]), dice.between(1, 6))):
            head = f"(Worker_TP{rank} pid={pids[rank]}) ERROR {clock.now()} [multiproc_executor.py:817] "
            told.append(head + left[rank].pop(0))
        if not left[rank]:
            del left[rank]
    return told


def _worker_failed(error: str) -> list[str]:
    said = error.partition(": ")[2] or error
    return [
        TRACEBACK,
        f'  File "{SITE}/engine/core.py", line 866, in run_engine_core',
        "    engine_core = EngineCoreProc(*args, engine_index=dp_rank, **kwargs)",
        f'  File "{SITE}/executor/multiproc_executor.py", line 352, in get_response',
        "    raise RuntimeError(",
        (
            f"RuntimeError: Worker failed with error '{said}', "
            "please check the stack trace above for the root cause"
        ),
    ]


def _core(story: Sequence[str], clock: Clock, running: bool) -> list[str]:
    core = f"(EngineCore_DP0 pid={clock.core})"
    first = "EngineCore encountered a fatal error." if running else "EngineCore failed to start."
    told = [f"{core} ERROR {clock.now()} [core.py:875] {line}" for line in (first, *story)]
    return [*told, f"{core} Process EngineCore_DP0:", *(f"{core} {line}" for line in story)]


def _server(clock: Clock, running: bool) -> list[str]:
    server = f"(APIServer pid={clock.server})"
    if running:
        request = '10.4.0.9:40112 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error'
        return [
            *(f"{server} ERROR {clock.now()} [async_llm.py:546] {line}" for line in _DIED_RUNNING),
            f"{server} INFO:     {request}",
        ]
    return [f"{server} {line}" for line in _DIED_STARTING]


_DIED_RUNNING = (
    "AsyncLLM output_handler failed.",
    TRACEBACK,
    f'  File "{SITE}/engine/async_llm.py", line 541, in output_handler',
    "    outputs = await engine_core.get_output_async()",
    (
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. "
        "See stack trace (above) for the root cause."
    ),
)
_DIED_STARTING = (
    TRACEBACK,
    '  File "/usr/local/bin/vllm", line 10, in <module>',
    "    sys.exit(main())",
    f'  File "{SITE}/engine/utils.py", line 907, in wait_for_engine_startup',
    "    raise RuntimeError(",
    (
        "RuntimeError: Engine core initialization failed. See root cause above. "
        "Failed core proc(s): {'EngineCore_DP0': 1}"
    ),
)


def _noise(dice: Dice, clock: Clock) -> list[str]:
    server = f"(APIServer pid={clock.server})"
    stamp = f"{clock.now().replace('-', '')}.{dice.below(10**9):09}"
    lines = [
        (
            f"[rank0]:[W{stamp} ProcessGroupNCCL.cpp:1538] Warning: WARNING: "
            "destroy_process_group() was not called before program exit"
        ),
        (
            "/usr/lib/python3.12/multiprocessing/resource_tracker.py:279: UserWarning: resource_tracker: "
            f"There appear to be {dice.between(1, 4)} leaked shared_memory objects to clean up at shutdown"
        ),
        "  warnings.warn('resource_tracker: There appear to be %d '",
        f"{server} INFO:     Shutting down",
        f"{server} INFO:     Application shutdown complete.",
    ]
    return lines[: dice.between(1, len(lines))]


Item = TypeVar("Item")


class Dice:
    """A stream of numbers that its seed decides."""

    def __init__(self, *seed: object) -> None:
        self._seed = "/".join(map(str, seed))
        self._thrown = 0

    def below(self, limit: int) -> int:
        """A number from 0 to `limit` - 1."""
        self._thrown += 1
        digest = hashlib.blake2b(f"{self._seed}#{self._thrown}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % limit

    def between(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[Item]) -> Item:
        """One of the items."""
        return items[self.below(len(items))]

    def hexadecimal(self, digits: int) -> str:
        """So many hex digits."""
        return "".join(self.pick("0123456789abcdef") for _ in range(digits))


def same_dice(seed: int, kind: str, value: str) -> Dice:
    """Dice that fall alike wherever this value stands in a log, so that equals stay equal."""
    return Dice(seed, kind, value)
