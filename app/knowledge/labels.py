"""Display names of values, shared by all formats.

A value without a label is shown as its name with spaces for underscores: see `label`.
"""

import re
from collections.abc import Mapping

VERSIONS = {
    "vllm": "vLLM",
    "torch": "torch",
    "cuda": "CUDA",
    "python": "Python",
    "transformers": "transformers",
    "driver": "driver",
}
BACKENDS = {
    "attention": "Attention backend",
    "moe": "MoE backend",
    "all2all": "All-to-all backend",
    "quantization": "Quantization",
    "kv_cache_dtype": "KV cache type",
    "executor": "Executor",
    "structured_output": "Structured output backend",
    "speculative": "Speculative decoding",
    "lora": "LoRA",
    "engine": "Engine",
    "platform": "Platform",
}
REGRESSION = {
    "last_working": "Last version that worked",
    "first_failing": "First version that failed",
    "still_failing": "A later version that still fails",
    "fixed_in": "Version in which it is fixed",
    "culprit": "The change that brought it",
}
FAILURES = {
    "oom": "out of memory",
    "wrong_output": "wrong output",
    "install": "installation failure",
    "other": "other failure",
    "none": "no failure",
}
SPEAKERS = {"reporter": "the reporter", "maintainer": "a maintainer", "other": "another user"}
MODEL_FIELDS = {
    "error.message": "Error",
    "versions.vllm": "vLLM version",
    "regression.last_working": "Last working version",
    "regression.first_failing": "First failing version",
    "regression.still_failing": "Fails too",
    "regression.fixed_in": "Fixed in",
    "regression.culprit": "Blamed change",
    "models": "Model",
    **{f"backends.{key}": name for key, name in BACKENDS.items()},
}
CERTAINTIES = {"stated": "Cause", "hypothesis": "Possible cause"}


def model_field(field: str, certainty: str) -> str:
    """Return the label of a value that the operator's model read in a log."""
    return CERTAINTIES.get(certainty) or MODEL_FIELDS.get(field, field)


OUTCOMES = {"works": "works", "partial": "helps partly", "fails": "did not help"}
REMEDIES = {"env": "environment variable", "config": "setting", "code": "change of code"}
"""Kinds of remedies."""
BANDS = {"same": "Same failure", "likely": "Likely", "related": "Related", "unknown": "Unknown"}
FIXES = {
    "fixed": "Fixed",
    "merged_unreleased": "Merged, in no known release",
    "in_progress": "In progress",
    "not_fixed": "Not fixed",
    "closed_unresolved": "Closed unresolved",
    "unknown": "Fix unknown",
}
MERGED_ELSEWHERE = "Merged in another repository"
FORGOTTEN = ("taken down", "kept out")
"""Reasons for a gone issue that mean its text was deleted; see `app.store.github.presence`."""
FOR_YOU = {
    "upgrade": "Upgrade: your version does not have it.",
    "already_included": "You have the fix; this is something else, or it came back.",
    "not_fixed": "Upgrading is not known to help.",
    "unknown": "Whether your version has it is not known.",
}
STANDINGS = {
    "open": "open",
    "fixed_later": "fixed later",
    "merged": "fix merged, in no known release",
    "closed": "closed without a known fix",
}
"""State of a known failure as seen from a version."""
BASES = {
    "reported": "reported in it",
    "in_range": "it lies in the range that fails",
    "since": "fails since earlier",
}
"""Why a version is considered to have a failure."""
SIGNALS = {
    "works": "Remedy works",
    "easy_fix": "Easy fix",
    "time_saver": "Saved time",
    "blocking": "Blocking",
    "common": "Common",
    "flaky": "Flaky",
    "verified": "Reproduced",
}
FACETS = {
    "state": "State",
    "has_workaround": "Remedy",
    "has_regression": "Regression",
    "failure_kind": "Kind",
    "error_type": "Error type",
    "arch": "GPU architecture",
    "gpu": "GPU",
    "model": "Model family",
    "backend": "Backend",
    "vllm_version": "vLLM version",
}
SORTS = {
    "newest": "newest first",
    "updated": "last changed",
    "comments": "most comments",
    "reactions": "most reactions",
    "relevance": "by relevance",
}
FLAGS = {
    ("has_workaround", "true"): "has a remedy",
    ("has_workaround", "false"): "no remedy",
    ("has_regression", "true"): "regression range known",
    ("has_regression", "false"): "regression range unknown",
    ("affects", "affects"): "affects you",
    ("affects", "unsure"): "may affect you",
}
SOURCES = {"title": "title", "body": "issue text", "card": "starter card"}
"""Sources of quotes; all others are comments or other issues."""
OUTGOING = {
    "duplicate": "duplicate of",
    "same": "reported as the same as",
    "introduced_by": "introduced by",
    "fixed_by": "reportedly fixed by",
    "fixes": "says it fixes",
    "similar": "reported as similar to",
    "mentions": "mentions",
    "moved_to": "moved to",
}
"""A relation, read from its source to its target."""
INCOMING = {
    "duplicate": "says it is a duplicate of this",
    "same": "says it is the same",
    "introduced_by": "says this one introduced it",
    "fixed_by": "says this one fixes it",
    "fixes": "says it fixes this",
    "similar": "says it is similar",
    "mentions": "mentions this",
    "moved_to": "moved here",
}
"""The same, seen from the target."""
LIKENESS = {"same": "alike: same failure", "likely": "alike: likely the same", "related": "similar topic"}


def label(value: str, labels: Mapping[str, str]) -> str:
    """Return the label of a value, or its name with spaces."""
    return labels.get(value, value.replace("_", " "))


_TITLE_MARKS = re.compile(r"(?<![\w`*])(`+|\*\*)(?=[^\s`*])(.{1,300}?)(?<=[^\s`*])\1(?![\w`*])")
"""Code or bold text in a title; marks inside a word, as in `**kwargs` and `__init__`, are part of it."""
_LONE_MARKS = re.compile(r"`+(?=[\w\[{(/.-])(?![^`\s]*')|(?<=[\w\])}\"'])`+|(?<=\w)\*\*(?=[\s.,:;)]|$)")
"""Marks whose other half was cut off."""


def heading(title: str) -> str:
    """Strip the marks of code and bold text from a title or an error."""
    return _LONE_MARKS.sub("", _TITLE_MARKS.sub(r"\2", title.replace("\\`", "")))


def count(number: int) -> str:
    """Format a number with thousands separators."""
    return f"{number:,}"


def plural(number: int, one: str, many: str = "") -> str:
    """Format a number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def source_label(source: str) -> str:
    """Return the label of a quote's source: title, issue text, comment, or the other issue's name."""
    return SOURCES.get(source, source if "#" in source else "comment")
