"""Secrets are masked, and offsets stay true."""

from __future__ import annotations

import random
import time
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from app.bench.cases import load_pinned
from app.extract.facts import Frozen
from app.extract.reader import read_log
from app.extract.redact import BLOCK, is_placeholder, mask_part, mask_secrets, masked, masked_all, redact
from tests.rows import over_rows
from tests.secret_shapes import SHAPES, make_all

HUB = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
RULES = tomllib.loads((files("app.extract.lists") / "secrets.toml").read_text("utf-8"))["rule"]
MASKING = [rule for rule in RULES if not rule.get("spares")]
SHAPES_MADE = {seed: make_all(seed) for seed in (1, 2, 3)}
MUST_MASK = (Path(__file__).with_name("must_mask.txt")).read_text(encoding="utf-8").splitlines()
"""Made texts, a line each with `⏎` for a line's end; what names a secret, a person or a host is in `⟦⟧`."""
ORDINARY = (Path(__file__).with_name("ordinary.txt")).read_text(encoding="utf-8").splitlines()
"""Lines of ordinary logs, which hold nothing to mask."""
PASTED = [log.log for log in load_pinned().real_logs]
LONG_CHARS = 4_000
NOISE = "(APIServer pid=1) INFO 06-03 03:12:44 [loggers.py:1] Avg generation throughput: 12.0 tokens/s\n"


@over_rows("rule", MASKING)
def test_every_rule_masks_its_example(rule: dict[str, str]) -> None:
    masked = redact(rule["hit"], private=True)

    assert BLOCK in masked.text
    assert len(masked.text) == len(rule["hit"])


@over_rows("rule", RULES)
def test_every_rule_leaves_its_counter_example_alone(rule: dict[str, str]) -> None:
    assert redact(rule["miss"], private=True).text == rule["miss"]


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.get("spares")], ids=lambda rule: rule["id"])
def test_what_a_rule_spares_is_masked_elsewhere_only(rule: dict[str, str]) -> None:
    assert redact(rule["hit"], private=True).text == rule["hit"]


@over_rows("name", SHAPES)
def test_a_seeded_secret_is_masked_in_its_place(name: str) -> None:
    for made in SHAPES_MADE.values():
        text, secret = made[name]
        masked = redact(text, private=True)

        assert secret not in masked.text
        assert len(masked.text) == len(text)
        assert masked.text.count("\n") == text.count("\n")
        assert sum(count for _, count in masked.counts) >= 1
        assert redact(masked.text, private=True).text == masked.text


@over_rows("name", SHAPES)
def test_a_secret_in_a_long_log_is_masked_as_in_a_short_one(name: str) -> None:
    text, _ = SHAPES_MADE[1][name]
    before = NOISE * (LONG_CHARS // len(NOISE) + 1)

    assert (
        redact(f"{before}{text}\n{before}", private=True).text
        == f"{before}{redact(text, private=True).text}\n{before}"
    )


@over_rows("name", SHAPES)
def test_every_part_is_masked_as_it_is_in_the_whole_text(name: str) -> None:
    text = f"{NOISE * 30}{SHAPES_MADE[1][name][0]}\n{NOISE * 30}"
    masked = mask_secrets(text)
    starts = [0, *(at + 1 for at, sign in enumerate(text) if sign == "\n")]

    for start, end in zip(starts[26:], starts[30:], strict=False):
        assert mask_part(text, start, end) == masked[start:end]


def test_many_secrets_far_apart_are_masked_each_in_its_place() -> None:
    pieces = [piece for text, _ in SHAPES_MADE[1].values() for piece in (NOISE * 9, text + "\n")]
    masked = redact("".join(pieces), private=True).text

    assert len(masked) == len("".join(pieces))
    assert [secret for _, secret in SHAPES_MADE[1].values() if secret in masked] == []
    # from a key block without an end to one without a head all is masked: it may be one block
    assert masked.count(NOISE) == 9 * (len(SHAPES) - 1)


def test_what_stands_far_below_a_name_is_not_its_value() -> None:
    text = (
        f"hf_token:\n{NOISE * (LONG_CHARS // len(NOISE) + 9)}'not a secret at all'\npassword: correct-horse\n"
    )

    assert mask_secrets(text) == text.replace("correct-horse", BLOCK * 13)


@pytest.mark.parametrize(
    "rule",
    [rule for rule in RULES if rule.get("private") and not rule.get("spares")],
    ids=lambda rule: rule["id"],
)
def test_a_public_text_keeps_hosts_and_people(rule: dict[str, str]) -> None:
    assert redact(rule["hit"]).text == rule["hit"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"HF_TOKEN={HUB} vllm serve", f"HF_TOKEN={BLOCK * len(HUB)} vllm serve"),
        (f"--hf-token {HUB}", f"--hf-token {BLOCK * len(HUB)}"),
        ("api_key='tok-abc123456', model='x'", f"api_key='{BLOCK * 13}', model='x'"),
        ("api_key=['tok-abc123456']", f"api_key=['{BLOCK * 13}']"),
        ("'VLLM_API_KEY': 'tok-abc123456'", f"'VLLM_API_KEY': '{BLOCK * 13}'"),
        ("--api-key tok-abc123456", f"--api-key {BLOCK * 13}"),
        ("password: correct-horse", f"password: {BLOCK * 13}"),
        ("aws_secret_access_key=wJalrXUtnFEMI", f"aws_secret_access_key={BLOCK * 13}"),
        ("http://user:pass123@proxy:8080/x", f"http://{BLOCK * 12}@proxy:8080/x"),
        ("Authorization: Bearer abc123def456", f"Authorization: Bearer {BLOCK * 12}"),
    ],
)
def test_only_the_secret_itself_is_masked(text: str, wanted: str) -> None:
    assert mask_secrets(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "api_key=None, model='x'",
        "api_key='EMPTY'",
        "api_key='token-abc123'",
        "api_key=<redacted>",
        "api_key=xxxxxxxx",
        "max_tokens=100000",
        "secrets are kept elsewhere",
        "tokenizer_mode=autotokenizer",
        "skip-tokenizer-init",
        "task-queue-of-some-length",
        "api_key=self.api_key",
        "hf_token=args.hf_token,",
        "HF_TOKEN=hf_xxx",
        "HF_TOKEN=hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "HF_TOKEN=<token>",
        "--api-key $VLLM_API_KEY --port 8000",
        "-e HF_TOKEN=${HF_TOKEN}",
        "api_key: Optional[str] = None",
        "Authorization: Bearer $TOKEN",
        "Authorization: Bearer <token>",
        "-v /etc/passwd:/etc/passwd:ro",
        "http://user:password@host",
        "max_num_batched_tokens=8192",
        "bos_token='<s>', pad_token='<|endoftext|>'",
        "use_auth_token=False",
        "KeyError: 'token'",
        "API key is required",
        "password protected",
        "basic configuration",
        "bearer authentication failed",
        "Qwen/Qwen3-Next-80B-A3B-Instruct",
        "meta-llama/Llama-3.1-8B-Instruct",
        "nm-testing/sk-model",
        "revision=0123456789abcdef0123456789abcdef01234567",
        "cache key 5f2b1c0d9e8a7b6c5d4e3f2a1b0c9d8e: torch_compile_cache/5f2b1c0d9e",
        "GPU-3f2b1c0d-9e8a-7b6c-5d4e-3f2a1b0c9d8e",
        "--enable-prefix-caching --kv-cache-dtype fp8 --api-server-count 2",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "vllm-0.6.4.post1+cu124-cp38-abi3-linux_x86_64.whl",
        "commit 4f5c9d8e7a6b5c4d3e2f1a0b9c8d7e6f5a4b3c2d",
        "token_ids=[1, 2, 3]",
        "seed_request_id: cmpl-4f5c9d8e7a6b5c4d3e2f1a0b9c8d7e6f",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAE",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask_secrets(text) == text


def test_secrets_are_counted_by_kind() -> None:
    text = f"{HUB} {HUB} api_key='tok-abc123456' (pid=1, ip=10.1.2.3) tcp 192.168.1.2:5000"

    assert redact(text, private=True).counts == (
        ("hugging_face_token", 2),
        ("ip_address", 2),
        ("named_secret", 1),
    )


def test_a_text_without_secrets_is_the_same_and_counts_nothing() -> None:
    for private in (True, False):
        masked = redact("ValueError: no", private=private)
        assert (masked.text, masked.counts) == ("ValueError: no", ())


def test_masking_twice_changes_nothing() -> None:
    once = redact(f"api_key='tok-abc123456' {HUB}", private=True)

    twice = redact(once.text, private=True)
    assert (twice.text, twice.counts) == (once.text, ())


PIECES = [
    HUB,
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "api_key=",
    "'tok-abc123456'",
    "Bearer ",
    "AKIAIOSFODNN7EXAMPLE",
    "é🦙",
    "http://",
    "user:pass@",
    "10.1.2.3:8000",
    "jane@example.com",
    "/home/jane/",
    "\n",
    " ",
    "-----BEGIN PRIVATE KEY-----",
    "-----END",
    BLOCK,
    "=",
    ":",
]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join), st.booleans())
def test_every_character_is_kept_in_its_place_or_masked(text: str, private: bool) -> None:
    masked = redact(text, private=private).text

    assert len(masked) == len(text)
    assert [(old, new) for old, new in zip(text, masked, strict=True) if new not in (old, BLOCK)] == []


@given(st.text(max_size=300))
def test_any_text_keeps_its_length(text: str) -> None:
    assert len(redact(text, private=True).text) == len(text)


@given(st.text(st.characters(codec="utf-8"), max_size=40), st.text(st.characters(codec="utf-8"), max_size=40))
def test_a_token_never_survives_between_blanks(before: str, after: str) -> None:
    assert HUB not in mask_secrets(f"{before} {HUB} {after}")


@pytest.mark.parametrize(
    "text", ["HF_TOKEN=$HF_TOKEN", "HF_TOKEN=your_token_here", "api_key=os.environ['KEY']"]
)
def test_what_only_stands_in_for_a_secret_stays(text: str) -> None:
    assert mask_secrets(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "vLLM 0.6.4.1 on CUDA 12.4.1.2",
        "nvidia-cublas-cu12==12.4.5.8",
        "nvidia-curand-cu12   10.3.5.147   pypi_0   pypi",
        "libcudnn.so.9.1.0.70",
        "opencv-python-headless==4.11.0.86",
        "TensorRT version 10.3.0.26",
        "03:12:44.866 12:30:45",
        "http://127.0.0.1:8000",
        "host='0.0.0.0', port=8000",
        "http://localhost:8000",
        "tcp://[::1]:29500",
        "c10::Error: at::native",
        "00000000:3B:00.0 Off",
        "driver 550.54.15",
        "q@k.T",
        "vllm@0.6.4",
        "git@github.com:vllm-project/vllm.git",
        "/home/",
        "/home/ubuntu/vllm",
        "/root/.cache/huggingface",
        "void f<std::vector<int>>::call()",
        "2024:05:06 07:08:09",
        "@torch.inference_mode()",
    ],
)
def test_what_names_nobody_stays_in_a_log(text: str) -> None:
    assert redact(text, private=True).text == text


def shows_what_must_be_masked(shape: str) -> bool:
    """Whether a letter or digit between the marks of a made text is still there."""
    pieces = shape.replace("⏎", "\n").replace("⟧", "⟦").split("⟦")
    masked = redact("".join(pieces), private=True).text
    at = 0
    for number, piece in enumerate(pieces):
        kept = masked[at : at + len(piece)]
        if number % 2 and any(sign.isalnum() for sign in kept):
            return True
        at += len(piece)
    return False


def test_nearly_every_made_shape_is_masked() -> None:
    page = [shape for shape in MUST_MASK if shows_what_must_be_masked(shape)]
    print(*page, sep="\n")

    assert len(MUST_MASK) == 300
    assert len(page) <= 0.03 * len(MUST_MASK), page


def test_nearly_no_ordinary_line_is_touched() -> None:
    touched = [line for line in ORDINARY if redact(line, private=True).text != line]
    print(*touched, sep="\n")

    assert len(ORDINARY) == 258
    assert len(touched) <= 0.01 * len(ORDINARY), touched


@pytest.mark.parametrize(
    "logs", [PASTED[::4], pytest.param(PASTED, marks=pytest.mark.long)], ids=["some", "all"]
)
def test_a_masked_log_is_read_as_before(logs: list[str]) -> None:
    for log in logs:
        masked = redact(log, private=True).text
        if masked != log:
            assert read_log(masked).signatures == read_log(log).signatures


@pytest.mark.parametrize(
    "prefix", ["Mar 03 11:02:31 gpu-07 vllm[4173]: ", "2026-03-03T11:02:31+0000 gpu-07 vllm[4173]: "]
)
def test_the_systems_log_is_read_without_the_name_of_its_host(prefix: str) -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/opt/vllm/v1/worker/gpu_worker.py", line 9, in load',
    ]
    log = "".join(f"{prefix}{line}\n" for line in [*lines, "    raise e", "ValueError: no such layer"])
    masked = redact(log, private=True).text

    assert "gpu-07" not in masked
    assert read_log(masked).signatures == read_log(log).signatures != ()


def test_addresses_without_an_end_cost_time_by_their_length_only() -> None:
    start_s = time.process_time()
    redact("http://user:pass123@pr" * 20_000)

    assert time.process_time() - start_s < 1.5


def test_time_grows_with_the_length_and_not_faster() -> None:
    """A log made of nothing but halves of secrets, on one line, is read in one pass too."""
    line = "token=a1 api_key='x -----BEGIN PRIVATE KEY----- password= http://a:b /home/ 10.1.2 eyJ hf_ "
    short, long = (redact(line * count, private=True) for count in (200, 2_000))

    assert len(long.text) == 10 * len(short.text)


MANY = "".join(
    f"line {at} \U0001f525 api_key='v{at}x{at}abc' from 10.0.{at % 256}.7\n" for at in range(9_000)
)


def test_a_log_of_secrets_is_counted_in_full_and_keeps_its_places() -> None:
    masked = redact(MANY, private=True)

    assert masked.counts == (("ip_address", 9_000), ("named_secret", 9_000))
    assert [len(line) for line in masked.text.splitlines()] == [len(line) for line in MANY.splitlines()]


def test_what_stands_in_a_secrets_place_is_told_among_many_secrets() -> None:
    values = [f"v{at}x{at}abc" if at % 3 else "your_api_key" for at in range(9_000)]

    assert redact("".join(f"api_key='{value}'\n" for value in values)).counts == (("named_secret", 6_000),)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("email", "git@github.com"),
        ("user_name", "ubuntu"),
        ("user_name", "root@node7"),
        ("ip_address", "127.0.0.1"),
        ("named_secret", "${HF_TOKEN}"),
        ("named_secret", "<token>"),
        ("token", "os.environ['X']"),
        ("named_secret", "[redacted]"),
    ],
)
def test_a_placeholder_of_each_form_is_none(kind: str, value: str) -> None:
    assert is_placeholder(value, kind)


class Note(Frozen):
    title: str
    lines: tuple[str, ...] = ()
    told: Mapping[str, str] = Field(default_factory=dict)


PLAIN = Note(title="a worker died", lines=("one", "two"), told={"url": "https://github.com/o/r/issues/7"})


def test_answers_without_secrets_stay_as_they_are() -> None:
    assert masked_all([PLAIN, PLAIN]) == [PLAIN, PLAIN]


def test_no_answers_are_no_answers() -> None:
    assert masked_all([]) == []


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_a_secret_in_one_of_many_answers_is_masked_as_if_it_stood_alone(shape: str) -> None:
    line, _ = SHAPES[shape](random.Random(shape))
    alone = masked(Note(title=line)).title

    page = masked_all([PLAIN, Note(title="x", lines=("before", line), told={"after": line}), PLAIN])

    assert [page[0], page[2]] == [PLAIN, PLAIN]
    assert (page[1].lines, page[1].told["after"]) == (("before", alone), alone)
