"""The same crash on another machine: everything that differs between two machines is changed, nothing else.

In: a log, a seed, a form. Out: the log as somebody else would paste it. Equal values stay equal (one pid
stays one pid); the line numbers of one file move together, as between two versions. The form says how it
was cut or wrapped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, get_args

from app.bench.cascade import Dice, cascade, same_dice

Form = Literal["whole", "tail", "last", "kubernetes", "docker", "journal", "cascade"]
FORMS: tuple[Form, ...] = get_args(Form)
MACHINE_FORMS: tuple[Form, ...] = tuple(form for form in FORMS if form != "cascade")

Change = Callable[[re.Match[str]], str]

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

_DIR = r"(?:[A-Za-z]:)?(?:[/\\][\w.+@~ -]*?)*"
_ROOM = (
    r"(?:engine|v1|worker|model_executor|executor|entrypoints|attention|core|distributed|lora|multimodal"
    r"|transformers_utils|compilation|utils|platforms|inputs|spec_decode)\b"
)
_PACKAGES = re.compile(r"(?:[A-Za-z]:)?(?:[/\\][\w.+@~-]+)*[/\\](?:site|dist)-packages(?=[/\\])")
_CHECKOUT = re.compile(rf'(?<=File ")(?:/[\w.+@~-]+)+?/(?=vllm/{_ROOM})')
_STDLIB = re.compile(r"(?:/[\w.+@~-]+)*/lib(?:64)?/python3\.\d+(?=/(?!(?:site|dist)-packages))")
_HOME = re.compile(r"/(?:home|Users)/[\w.+@~-]+|/root(?=/)")
_PROMPT = re.compile(r"\b[\w.-]+@[\w.-]+(?=:[~/][^\s$#]*[$#])")
_PID = re.compile(r"(\bpid[=: ]\s?)(\d+)")
_DAY_TIME = re.compile(r"\b\d\d-\d\d (?=\d\d:\d\d:\d\d)")
_ISO_DAY = re.compile(r"\b20\d\d-\d\d-\d\d(?=[T ]\d\d:\d\d)")
_GLOG_DAY = re.compile(r"(?<=\[[WEFI])\d{3,4}(?= \d\d:\d\d:\d\d)")
_CLOCK = re.compile(r"(?<![\d:])(\d\d):(\d\d):(\d\d)(?:([.,])(\d+))?\b")
_PORT = re.compile(r"(\bport[=: ]\s?|(?:localhost|\d\.\d{1,3}|\]):)(\d{4,5})\b")
_ADDRESS = re.compile(r"(?<![\w.-])(?<!==)(?:\d{1,3}\.){3}\d{1,3}(?![\w.-])")
_POINTER = re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")
_LONG_ID = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{24,64}\b")
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_FILE_LINE = re.compile(r'(File "([^"\n]+)", line )(\d+)')
_SHORT_LINE = re.compile(r"(\b([\w/]+\.(?:py|cpp|cu|cc|h)):)(\d+)(?=[\]: ])")
_SIZE = re.compile(r"\b(\d+\.\d\d) (GiB|MiB|KiB|GB|MB)\b")
_RANK = re.compile(r"((?:\brank[ =:]?|\bcuda:|\bGPU |\bTP|\blocal_rank=))(\d)\b")
_PREFIX = re.compile(
    r"^(?P<who>\([A-Z]\w*(?: rank=\d+)? pid=\d+[^)]*\) )?(?P<level>INFO|WARNING|ERROR|CRITICAL|DEBUG) "
    r"(?P<when>\d\d-\d\d \d\d:\d\d:\d\d) \[?(?P<file>[\w/]+\.py):(?P<line>\d+)\] ?"
)
_WORKER = re.compile(
    r"\((?:RayWorkerVllm|RayWorkerWrapper|VllmWorkerProcess|VllmWorker(?: rank=\d)?|Worker_TP\d) pid="
)
_TAILS = (14, 20, 28, 40)


def rewrite(log: str, seed: int, form: Form) -> str:
    """The log as it might come from another machine, in this form; empty if the form does not fit it."""
    dice = Dice(seed, form)
    lines = _move(log.replace("\r", ""), seed).split("\n")
    if form == "cascade":
        return cascade(lines, dice)
    lines = _print_anew(lines, dice)
    return "\n".join(_cut_and_wrap(lines, form, dice)).strip("\n")


def _move(log: str, seed: int) -> str:
    """All that belongs to a machine and a moment, changed."""
    for pattern, change in _changes(seed):
        log = pattern.sub(change, log)
    return log


def _changes(seed: int) -> Sequence[tuple[re.Pattern[str], Change]]:
    dice = Dice(seed, "machine")
    home = f"/home/{dice.pick(USERS)}"
    where = {"home": home, "py": dice.pick(PYTHONS)}
    site, library = dice.pick(SITES).format(**where), dice.pick(LIBRARIES).format(**where)
    host, day, month = dice.pick(HOSTS), dice.between(1, 28), dice.between(1, 12)
    year = dice.pick((2025, 2026))
    shift = tuple(dice.below(60) for _ in range(3))
    scale, ranks = dice.between(60, 150) / 100, dice.below(8)
    return (
        (_PACKAGES, lambda _: site),
        (_CHECKOUT, lambda _: f"{site}/"),
        (_STDLIB, lambda _: library),
        (_HOME, lambda _: home),
        (_PROMPT, lambda _: f"{home[6:]}@{host}"),
        (_PID, lambda m: m[1] + str(same_dice(seed, "pid", m[2]).between(300, 990_000))),
        (_DAY_TIME, lambda _: f"{month:02}-{day:02} "),
        (_ISO_DAY, lambda _: f"{year}-{month:02}-{day:02}"),
        (_GLOG_DAY, lambda _: f"{month:02}{day:02}"),
        (_CLOCK, lambda m: _later(m, shift, seed)),
        (_PORT, lambda m: m[1] + str(same_dice(seed, "port", m[2]).between(7000, 62_000))),
        (_ADDRESS, lambda m: _other_address(m[0], seed)),
        (_POINTER, lambda m: "0x" + same_dice(seed, "pointer", m[0]).hexadecimal(len(m[0]) - 2)),
        (_LONG_ID, lambda m: same_dice(seed, "id", m[0]).hexadecimal(len(m[0]))),
        (_UUID, lambda m: _other_uuid(m[0], seed)),
        (_FILE_LINE, lambda m: m[1] + _moved_line(m[3], m[2], seed)),
        (_SHORT_LINE, lambda m: m[1] + _moved_line(m[3], m[2], seed)),
        (_SIZE, lambda m: f"{float(m[1]) * scale:.2f} {m[2]}"),
        (_RANK, lambda m: m[1] + str((int(m[2]) + ranks) % 8)),
    )


def _later(found: re.Match[str], shift: Sequence[int], seed: int) -> str:
    hour, minute, second = (int(found[part]) for part in (1, 2, 3))
    told = f"{(hour + shift[0]) % 24:02}:{(minute + shift[1]) % 60:02}:{(second + shift[2]) % 60:02}"
    if not found[4]:
        return told
    digits = len(found[5])
    return told + found[4] + f"{same_dice(seed, 'fraction', found[5]).below(10**digits):0{digits}}"


def _other_address(address: str, seed: int) -> str:
    if address in {"0.0.0.0", "127.0.0.1"} or any(int(part) > 255 for part in address.split(".")):  # noqa: S104
        return address
    dice = same_dice(seed, "address", address)
    return f"10.{dice.below(250)}.{dice.below(250)}.{dice.between(2, 250)}"


def _other_uuid(uuid: str, seed: int) -> str:
    digits = same_dice(seed, "uuid", uuid).hexadecimal(32)
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _moved_line(line: str, file: str, seed: int) -> str:
    """The number of the same line in another version of its file."""
    name = re.split(r"[/\\]", file)[-1]
    return str(max(1, int(line) + same_dice(seed, "file", name).between(-35, 60)))


def _print_anew(lines: Sequence[str], dice: Dice) -> list[str]:
    """The log prefixes as another version prints them."""
    style = dice.pick(("{file}:{line}] ", "[{file}:{line}] "))
    worker = dice.pick(("(VllmWorkerProcess pid=", "(VllmWorker rank=0 pid=", "(Worker_TP0 pid="))
    found = []
    for line in lines:
        head = _PREFIX.match(line)
        if head:
            told = style.format(file=head["file"].rsplit("/", 1)[-1], line=head["line"])
            who = _WORKER.sub(worker, head["who"] or "")
            line = f"{who}{head['level']} {head['when']} {told}{line[head.end() :]}"  # noqa: PLW2901
        found.append(line)
    return found


def _cut_and_wrap(lines: list[str], form: Form, dice: Dice) -> list[str]:
    while lines and not lines[-1].strip():
        lines.pop()
    if form == "tail":
        return lines[-dice.pick(_TAILS) :]
    if form == "last":
        starts = [at for at, line in enumerate(lines) if "Traceback (most recent call last)" in line]
        return lines[starts[-1] :] if starts else lines[-dice.pick(_TAILS) :]
    if form == "docker":
        name = dice.pick(("vllm-1", "llm-server-1", "inference_vllm_1"))
        return [f"{name}  | {line}" for line in lines[-90:]]
    if form == "kubernetes":
        stream, stamps = dice.pick(("stdout", "stderr")), _stamps(dice)
        return [f"{next(stamps)} {stream} F {line}" for line in lines[-70:]]
    if form == "journal":
        head = f"{dice.pick(HOSTS)} vllm[{dice.between(900, 90_000)}]:"
        stamps = _stamps(dice)
        days = (f"Apr {stamp[8:10]} {stamp[11:19]}" for stamp in stamps)
        return [f"{next(days)} {head} {line}" for line in lines[-60:]]
    return lines


def _stamps(dice: Dice) -> Iterator[str]:
    """Times of one day in April that go on, as a container runtime prints them."""
    day, hour, nanosecond = dice.between(1, 28), dice.below(24), dice.below(10**11)
    while True:
        nanosecond += dice.below(80_000_000)
        second = nanosecond // 10**9 % 3600
        yield f"2026-04-{day:02}T{hour:02}:{second // 60:02}:{second % 60:02}.{nanosecond % 10**9:09}Z"
