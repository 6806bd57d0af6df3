"""Records and logs of our own, in the shapes that GitHub and vLLM give them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from app.store.records import CommentRecord, IssueRecord, ReleaseRecord

REPO = "vllm-project/vllm"
EARLY = datetime(2026, 4, 8, 9, tzinfo=UTC)
LATE = datetime(2026, 4, 9, 9, tzinfo=UTC)


def an_issue(number: int, **fields: Any) -> IssueRecord:
    """An open issue as GitHub tells it."""
    found: dict[str, Any] = {
        "title": f"[Bug]: issue {number}",
        "body": "It fails.",
        "state": "open",
        "created_at": EARLY,
        "updated_at": EARLY,
        "url": f"https://github.com/{REPO}/issues/{number}",
    }
    found |= fields
    found.setdefault(
        "raw", {"number": number, "title": found["title"], "body": found["body"], "state": found["state"]}
    )
    return IssueRecord(number=number, **found)


def a_pull(number: int, **fields: Any) -> IssueRecord:
    """A pull request; merged where `merged_at` is given."""
    found = {"title": f"Pull {number}", "body": "", "state": "closed" if fields.get("merged_at") else "open"}
    return an_issue(number, **{**found, "is_pull_request": True, **fields})


def a_comment(key: int, issue_number: int, body: str, **fields: Any) -> CommentRecord:
    found: dict[str, Any] = {"author": "someone", "created_at": EARLY, "updated_at": EARLY, **fields}
    return CommentRecord(key, issue_number, body, **found)


def a_release(tag: str, *pulls: int, **fields: Any) -> ReleaseRecord:
    found: dict[str, Any] = {
        "name": tag,
        "notes": "",
        "is_prerelease": False,
        "published_at": EARLY,
        **fields,
    }
    return ReleaseRecord(tag=tag, pulls=pulls, **found)


# Three failures of our own, each as a server prints it on one machine and on another.

SITE = "/opt/venv/lib/python3.12/site-packages"
_CORE = "(EngineCore_DP0 pid={pid}) ERROR {day} 09:26:54 [core.py:{line}] "
_SERVER = "(APIServer pid={pid}) "


def a_traceback(last: str, *frames: str, site: str = SITE, line: int = 20) -> str:
    """A traceback of frames given as `path/in/site-packages.py:function`."""
    found = [
        f'  File "{site}/{frame.split(":")[0]}", line {line}, in {frame.split(":")[1]}' for frame in frames
    ]
    return "\n".join(["Traceback (most recent call last):", *found, last])


def _server_log(error: str, pid: int, day: str, line: int, start: str = "") -> str:
    core = _CORE.format(pid=pid, day=day, line=line)
    server = _SERVER.format(pid=pid + 7)
    lines = ["EngineCore failed to start.", *error.splitlines()]
    tail = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
    return "\n".join([*start.splitlines(), *(core + text for text in lines), server + tail, ""])


def marlin_log(
    site: str = SITE, line: int = 20, pid: int = 314, day: str = "03-14", size: int = 4544, start: str = ""
) -> str:
    """A quantised layer whose width the kernel does not take."""
    error = a_traceback(
        f"ValueError: Weight output_size_per_partition = {size} is not divisible by min_thread_n = 64.",
        "vllm/v1/worker/gpu_worker.py:load_model",
        "vllm/model_executor/model_loader/utils.py:process_weights",
        "vllm/model_executor/layers/quantization/utils/marlin_utils.py:verify_marlin_supports_shape",
        site=site,
        line=line,
    )
    return _server_log(error, pid, day, line, start)


def rope_log(site: str = SITE, line: int = 20, pid: int = 314, day: str = "03-14") -> str:
    """A model whose configuration lacks a key."""
    error = a_traceback(
        "KeyError: 'rope_scaling_factor'",
        "vllm/transformers_utils/config.py:get_config",
        "vllm/transformers_utils/rope.py:patch_rope_scaling_dict",
        site=site,
        line=line,
    )
    return _server_log(error, pid, day, line)


def allreduce_log(pid: int = 314) -> str:
    """A device fault that a kernel of vLLM's own reports."""
    return f"""\
(Worker_TP3 pid={pid}) INFO 03-14 09:26:53 [custom_all_reduce.py:215] Registering 24 cuda graph addresses
Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:455 'an illegal memory access was encountered'
(EngineCore_DP0 pid={pid}) ERROR 03-14 09:26:54 [multiproc_executor.py:154] Worker proc VllmWorker-3 died unexpectedly, shutting down executor.
"""


HEALTHY_LOG = """\
(APIServer pid=1) INFO 03-14 09:26:40 [api_server.py:1978] vLLM API server version 0.9.1
(EngineCore_DP0 pid=9) INFO 03-14 09:26:42 [gpu_model_runner.py:2007] Starting to load model org/m-7b...
(EngineCore_DP0 pid=9) INFO 03-14 09:27:02 [gpu_model_runner.py:2039] Model loading took 14.9889 GiB and 19.6 seconds
(APIServer pid=1) INFO 03-14 09:27:30 [launcher.py:36] Available routes are:
(APIServer pid=1) INFO:     Application startup complete.
"""

FOREIGN_LOG = """\
Traceback (most recent call last):
  File "/srv/shop/manage.py", line 22, in <module>
    main()
  File "/usr/lib/python3/dist-packages/django/core/management/base.py", line 412, in run_from_argv
    self.execute(*args)
django.db.utils.OperationalError: connection to the orders database was closed by its operator
"""


def fenced(*parts: str) -> str:
    """An issue's body with logs as code."""
    return "\n\n".join(f"```text\n{part}```" if "\n" in part else part for part in parts)
