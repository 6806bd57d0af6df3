"""A log as another machine or another version of the server would print it.

Equal values stay equal; the line numbers of one file move together, as between two versions. The form says
how the log was cut or wrapped; `cascade` puts the first traceback into the output of a server of several
processes (`cascade.toml`).
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeVar, get_args

Form = Literal["whole", "tail", "last", "kubernetes", "docker", "journal", "cascade"]
FORMS: tuple[Form, ...] = get_args(Form)
MACHINE_FORMS: tuple[Form, ...] = tuple(form for form in FORMS if form != "cascade")

SITES = (
    "/opt/venv/lib/python{py}/site-packages",
    "/usr/local/lib/python{py}/dist-packages",
    "{home}/miniforge3/envs/serve/lib/python{py}/site-packages",
    "{home}/projects/llm/.venv/lib/python{py}/site-packages",
    "/app/.venv/lib/python{py}/site-packages",
)
LIBRARIES = (
    "/usr/lib/python{py}",
    "/usr/local/lib/python{py}",
    "{home}/.pyenv/versions/{py}.9/lib/python{py}",
)
USERS = ("mira", "svc-llm", "okafor", "jlind", "deploy", "student07")
HOSTS = ("gpu-a17", "node-204", "inference-3", "hpc-c12")
PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13")
TRACEBACK = "Traceback (most recent call last):"
TRACEBACK_LINES_MAX = 120
REWRITE_MIN = 80
"""Characters; a rewrite cut to less has lost what it was to tell."""

_VLLM_PACKAGES = (
    r"(?:engine|v1|worker|model_executor|executor|entrypoints|attention|core|distributed|lora|multimodal"
    r"|transformers_utils|compilation|utils|platforms|inputs|spec_decode)\b"
)
_PREFIX = re.compile(
    r"^(?P<who>\([A-Z]\w*(?: rank=\d+)? pid=\d+[^)]*\) )?(?P<level>INFO|WARNING|ERROR|CRITICAL|DEBUG) "
    r"(?P<when>\d\d-\d\d \d\d:\d\d:\d\d) \[?(?P<file>[\w/]+\.py):(?P<line>\d+)\] ?"
)
_WORKER = re.compile(
    r"\((?:RayWorkerVllm|RayWorkerWrapper|VllmWorkerProcess|VllmWorker(?: rank=\d)?|Worker_TP\d) pid="
)
_CHAINED = re.compile(r"(?:During handling of|The above exception was)")
_ERROR = re.compile(
    r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|ExceptionGroup|Interrupt|Exit)\b|[\w.]+Error\b"
)
_HEAD = re.compile(
    r"^(?:[\w-]+ +\| )?(?:20\d\d-\d\d-\d\d[ T][\d:.,]+Z? ?(?:\| )?)?"
    r"(?:\(?\[?\w+[^)\]\n]{0,40}pid[=: ]\d+[^)\]]*[)\]]:? ?|\[rank\d+\]:\s?)*"
    r"(?:(?:INFO|WARNING|ERROR|CRITICAL)[: ]+[\d: -]{8,20}\[?[\w./]+:\d+\] ?)?(?:\[rank\d+\]: ?)?"
)

Item = TypeVar("Item")


class Dice:
    """A stream of numbers that follow from a seed, alike on every machine and Python version."""

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


def rewrite(log: str, seed: int, form: Form) -> str:
    """The log as it might come from another machine, in this form; empty if the form does not fit it."""
    dice = Dice(seed, form)
    log = log.replace("\r", "")
    for pattern, change in _changes(seed):
        log = re.sub(pattern, change, log)
    lines = log.split("\n")
    if form == "cascade":
        return cascade(lines, dice)
    lines = _with_other_prefixes(lines, dice)
    return "\n".join(_cut_and_wrap(lines, form, dice)).strip("\n")


def ways_of(number: int, log: str) -> list[tuple[Form, int]]:
    """An issue's log in one form of another machine and one of a server of today, as far as it gives them."""
    forms: tuple[Form, ...] = (Dice("form", number).pick(MACHINE_FORMS), "cascade")
    ways = [(form, number * 10 + at) for at, form in enumerate(forms)]
    return [(form, seed) for form, seed in ways if len(rewrite(log, seed, form)) >= REWRITE_MIN]


def _changes(seed: int) -> Sequence[tuple[str, Callable[[re.Match[str]], str]]]:
    """What belongs to a machine, a moment or a version, and what stands there instead."""
    dice = Dice(seed, "machine")
    home = f"/home/{dice.pick(USERS)}"
    where = {"home": home, "py": dice.pick(PYTHONS)}
    site, library = dice.pick(SITES).format(**where), dice.pick(LIBRARIES).format(**where)
    host, day, month = dice.pick(HOSTS), dice.between(1, 28), dice.between(1, 12)
    year = dice.pick((2025, 2026))
    shift = [dice.below(60) for _ in range(3)]
    scale, ranks = dice.between(60, 150) / 100, dice.below(8)

    def same(kind: str, value: str) -> Dice:
        """Dice that fall alike wherever this value stands, so that equal values stay equal."""
        return Dice(seed, kind, value)

    def later(found: re.Match[str]) -> str:
        parts = (int(found[at + 1]) + shift[at] for at in range(3))
        clock = ":".join(f"{part % limit:02}" for part, limit in zip(parts, (24, 60, 60), strict=True))
        if not found[4]:
            return clock
        digits = len(found[5])
        return f"{clock}{found[4]}{same('fraction', found[5]).below(10**digits):0{digits}}"

    def address(found: re.Match[str]) -> str:
        is_any = found[0] in {"0.0.0.0", "127.0.0.1"}  # noqa: S104
        if is_any or any(int(part) > 255 for part in found[0].split(".")):
            return found[0]
        fresh = same("address", found[0])
        return f"10.{fresh.below(250)}.{fresh.below(250)}.{fresh.between(2, 250)}"

    def uuid(found: re.Match[str]) -> str:
        digits = same("uuid", found[0]).hexadecimal(32)
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def moved(found: re.Match[str]) -> str:
        """The number of the same line in another version of its file."""
        name = re.split(r"[/\\]", found[2])[-1]
        return found[1] + str(max(1, int(found[3]) + same("file", name).between(-35, 60)))

    return (
        (r"(?:[A-Za-z]:)?(?:[/\\][\w.+@~-]+)*[/\\](?:site|dist)-packages(?=[/\\])", lambda _: site),
        (rf'(?<=File ")(?:/[\w.+@~-]+)+?/(?=vllm/{_VLLM_PACKAGES})', lambda _: f"{site}/"),
        (r"(?:/[\w.+@~-]+)*/lib(?:64)?/python3\.\d+(?=/(?!(?:site|dist)-packages))", lambda _: library),
        (r"/(?:home|Users)/[\w.+@~-]+|/root(?=/)", lambda _: home),
        (r"\b[\w.-]+@[\w.-]+(?=:[~/][^\s$#]*[$#])", lambda _: f"{home[6:]}@{host}"),
        (r"(\bpid[=: ]\s?)(\d+)", lambda m: m[1] + str(same("pid", m[2]).between(300, 990_000))),
        (r"\b\d\d-\d\d (?=\d\d:\d\d:\d\d)", lambda _: f"{month:02}-{day:02} "),
        (r"\b20\d\d-\d\d-\d\d(?=[T ]\d\d:\d\d)", lambda _: f"{year}-{month:02}-{day:02}"),
        (r"(?<=\[[WEFI])\d{3,4}(?= \d\d:\d\d:\d\d)", lambda _: f"{month:02}{day:02}"),
        (r"(?<![\d:])(\d\d):(\d\d):(\d\d)(?:([.,])(\d+))?\b", later),
        (
            r"(\bport[=: ]\s?|(?:localhost|\d\.\d{1,3}|\]):)(\d{4,5})\b",
            lambda m: m[1] + str(same("port", m[2]).between(7000, 62_000)),
        ),
        (r"(?<![\w.-])(?<!==)(?:\d{1,3}\.){3}\d{1,3}(?![\w.-])", address),
        (r"\b0x[0-9a-fA-F]{6,16}\b", lambda m: "0x" + same("pointer", m[0]).hexadecimal(len(m[0]) - 2)),
        (
            r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{24,64}\b",
            lambda m: same("id", m[0]).hexadecimal(len(m[0])),
        ),
        (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", uuid),
        (r'(File "([^"\n]+)", line )(\d+)', moved),
        (r"(\b([\w/]+\.(?:py|cpp|cu|cc|h)):)(\d+)(?=[\]: ])", moved),
        (r"\b(\d+\.\d\d) (GiB|MiB|KiB|GB|MB)\b", lambda m: f"{float(m[1]) * scale:.2f} {m[2]}"),
        (
            r"((?:\brank[ =:]?|\bcuda:|\bGPU |\bTP|\blocal_rank=))(\d)\b",
            lambda m: m[1] + str((int(m[2]) + ranks) % 8),
        ),
    )


def _with_other_prefixes(lines: Sequence[str], dice: Dice) -> list[str]:
    """The log prefixes as another version prints them."""
    style = dice.pick(("{file}:{line}] ", "[{file}:{line}] "))
    worker = dice.pick(("(VllmWorkerProcess pid=", "(VllmWorker rank=0 pid=", "(Worker_TP0 pid="))

    def printed(head: re.Match[str]) -> str:
        place = style.format(file=head["file"].rsplit("/", 1)[-1], line=head["line"])
        return f"{_WORKER.sub(worker, head['who'] or '')}{head['level']} {head['when']} {place}"

    return [_PREFIX.sub(printed, line) for line in lines]


def _cut_and_wrap(lines: list[str], form: Form, dice: Dice) -> list[str]:
    while lines and not lines[-1].strip():
        lines.pop()
    if form in {"tail", "last"}:
        starts = [at for at, line in enumerate(lines) if "Traceback (most recent call last)" in line]
        is_last = form == "last" and starts
        return lines[starts[-1] :] if is_last else lines[-dice.pick((14, 20, 28, 40)) :]
    if form == "docker":
        name = dice.pick(("vllm-1", "llm-server-1", "inference_vllm_1"))
        return [f"{name}  | {line}" for line in lines[-90:]]
    if form == "kubernetes":
        stream, stamps = dice.pick(("stdout", "stderr")), _stamps(dice)
        return [f"{next(stamps)} {stream} F {line}" for line in lines[-70:]]
    if form == "journal":
        head = f"{dice.pick(HOSTS)} vllm[{dice.between(900, 90_000)}]:"
        days = (f"Apr {stamp[8:10]} {stamp[11:19]}" for stamp in _stamps(dice))
        return [f"{next(days)} {head} {line}" for line in lines[-60:]]
    return lines


def _stamps(dice: Dice) -> Iterator[str]:
    """Growing times of one day in April, as a container runtime prints them."""
    day, hour, nanosecond = dice.between(1, 28), dice.below(24), dice.below(10**11)
    while True:
        nanosecond += dice.below(80_000_000)
        second = nanosecond // 10**9 % 3600
        yield f"2026-04-{day:02}T{hour:02}:{second // 60:02}:{second % 60:02}.{nanosecond % 10**9:09}Z"


class _Drawn:
    """A value that is drawn anew each time it is printed."""

    def __init__(self, draw: Callable[[], object]) -> None:
        self._draw = draw

    def __str__(self) -> str:
        return str(self._draw())


@lru_cache(maxsize=1)
def _server_lines() -> dict[str, list[str]]:
    return tomllib.loads((Path(__file__).with_name("cascade.toml")).read_text(encoding="utf-8"))


def cascade(lines: Sequence[str], dice: Dice) -> str:
    """The first traceback as a server of several processes prints it; empty if there is none."""
    story = first_traceback(lines)
    if not story:
        return ""
    day = f"{dice.between(1, 12):02}-{dice.between(1, 28):02} {dice.below(24):02}"
    seconds = dice.below(2_000)
    server = dice.between(40, 80_000)
    core = server + dice.between(60, 300)
    workers = dice.pick((0, 0, 2, 2, 4))

    def now() -> str:
        nonlocal seconds
        seconds += dice.below(5) == 0
        return f"{day}:{seconds // 60:02}:{seconds % 60:02}"

    values: dict[str, object] = {
        "server": f"(APIServer pid={server})",
        "core": f"(EngineCore_DP0 pid={core})",
        "now": _Drawn(now),
        "tokens": _Drawn(lambda: dice.pick((2048, 8192, 16384))),
        "leaked": _Drawn(lambda: dice.between(1, 4)),
        "version": dice.pick(("0.13.0", "0.15.1", "0.17.0", "0.19.1", "0.21.0")),
        "size": max(1, workers),
        "error": story[-1].partition(": ")[2] or story[-1],
    }

    def printed(part: str, **more: object) -> list[str]:
        return [line.format(**values, **more) for line in _server_lines()[part]]

    log = printed("start")
    left = {rank: ["WorkerProc hit an exception.", *story] for rank in range(workers)}
    while left:  # each worker keeps its order, all are mixed
        rank = dice.pick(sorted(left))
        for _ in range(min(len(left[rank]), dice.between(1, 6))):
            log += printed("worker", rank=rank, pid=core + 40 + 9 * rank, line=left[rank].pop(0))
        if not left[rank]:
            del left[rank]
    if workers:
        story = printed("worker_failed")
    is_running = dice.below(3) == 0
    first = "EngineCore encountered a fatal error." if is_running else "EngineCore failed to start."
    log += [line for text in (first, *story) for line in printed("core", line=text)]
    log += [f"{values['core']} {line}" for line in ("Process EngineCore_DP0:", *story)]
    log += printed("died_running" if is_running else "died_starting")
    stamp = f"{now().replace('-', '')}.{dice.below(10**9):09}"
    shutdown = printed("shutdown", stamp=stamp)
    log += shutdown[: dice.between(1, len(shutdown))]
    return "\n".join(log[-dice.pick((45, 60, 80)) :] if dice.below(4) == 0 else log)


def first_traceback(lines: Sequence[str]) -> list[str]:
    """The first traceback without log prefixes, with what is chained to it, down to its error line."""
    bare = [_HEAD.sub("", line, count=1) for line in lines]
    start = next((at for at, line in enumerate(bare) if TRACEBACK in line), None)
    if start is None:
        return []
    margin = bare[start][: bare[start].index(TRACEBACK)]
    kept: list[str] = []
    end = 0
    for line in (line.removeprefix(margin) for line in bare[start : start + TRACEBACK_LINES_MAX]):
        is_chained = bool(_CHAINED.match(line))
        if end and line.strip() and not is_chained and line.strip() != TRACEBACK:
            break
        kept.append(line)
        if not line.startswith((" ", "\t")) and line.strip() != TRACEBACK and _ERROR.match(line):
            end = len(kept)
        elif is_chained:
            end = 0
    return kept[:end]
