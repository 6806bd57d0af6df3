"""The base behind the browser's tests: the starter set, a quarter with a busy week, and reports that are read.

What a page can show is in it: clusters, a regression, remedies that helped and that did not, comments, linked
pull requests and releases, a closed failure that goes on. All texts are our own.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from app.config import Settings
from app.knowledge.indexing.derive import derive_issues
from app.store.github.issues import add_repository, save_comments, save_issues
from app.store.github.releases import save_releases
from app.store.records import CommentRecord, IssueRecord
from app.store.session import Store, open_store
from tests.knowledge.made_week import MONDAY, put_week
from tests.samples import REPO, a_comment, a_pull, a_release, an_issue, fenced, marlin_log, rope_log
from tests.served import starter_settings

ADMIN_TOKEN = "of-the-browser-tests"
FULL = 60001
"""The report of which everything is known."""
REPORTS = range(FULL, FULL + 6)
PULL = 60050

MARLIN_BODY = fenced(
    "Your environment: NVIDIA H100 80GB HBM3, vLLM version: 0.9.2, PyTorch version: 2.7.1+cu128\n",
    "Serving `Qwen/Qwen3-32B-AWQ` with `--tensor-parallel-size 4` on 4 x H100 dies while the weights are loaded. "
    "It worked with 0.9.1; first fails in 0.9.2.",
    "It fails with:\n",
    marlin_log(start="INFO 04-01 09:26:42 [core.py:71] 4 x NVIDIA H100 80GB HBM3\n"),
    "Adding `--quantization awq` fixes it. `--enforce-eager` does not help.",
    "Introduced by #60050. See also #60002 and https://github.com/flashinfer-ai/flashinfer/issues/12.",
    "| tensor parallel | result |\n|---|---|\n| 2 | works |\n| 4 | fails |",
)
MARLIN_START = """\
INFO 04-01 09:26:40 [api_server.py:1978] vLLM API server version 0.9.2
INFO 04-01 09:26:41 [config.py:11] non-default args: {'model': 'Qwen/Qwen3-32B-AWQ', 'tensor_parallel_size': 4}
INFO 04-01 09:26:42 [core.py:71] Initializing on 4 x NVIDIA H100 80GB HBM3
"""
"""How the server of the report in `FULL` began."""
STRANGE_LOG = """\
(EngineCore_DP0 pid=7) ERROR 03-14 09:26:54 [core.py:20] Traceback (most recent call last):
(EngineCore_DP0 pid=7) ERROR 03-14 09:26:54 [core.py:20]   File "/srv/site/quux/frobnicate.py", line 3, in wobble
(EngineCore_DP0 pid=7) ERROR 03-14 09:26:54 [core.py:20] LookupError: the wobble of quux 77 has no counterpart
"""


def browser_settings(folder: Path) -> Settings:
    """Settings over a SQLite file with all of it; nobody is slowed down, and GitHub is nowhere."""
    settings = starter_settings(
        folder, rate_limit="off", github_api_url="http://127.0.0.1:9", admin_token=ADMIN_TOKEN
    )
    store = open_store(settings.database_url)
    put_week(store)
    put_reports(store)
    store.close()
    return settings


def put_reports(store: Store) -> None:
    """Stores and reads reports of our own, as the post room would."""
    put_read(store, _issues(), _comments())
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_releases(
            session, repo_id, [a_release("v0.9.3", PULL + 1, published_at=MONDAY + timedelta(days=9))]
        )


def put_read(store: Store, issues: list[IssueRecord], comments: list[CommentRecord]) -> None:
    """Stores issues with their comments and derives what is known of them."""
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, issues)
        save_comments(session, repo_id, comments)
        derive_issues(session, repo_id, REPO, [issue.number for issue in issues])


def _issues() -> list[IssueRecord]:
    day = timedelta(days=1)
    return [
        an_issue(
            FULL,
            title="[Bug]: AWQ layer is not divisible by min_thread_n at tensor parallel 4",
            body=MARLIN_BODY,
            author="reporter",
            labels=("bug", "quantization"),
            comments=3,
            reactions=5,
            created_at=MONDAY - 9 * day,
        ),
        *(
            an_issue(
                FULL + n,
                title=f"[Bug]: Marlin refuses the width of a quantised layer, case {n}",
                body=fenced(
                    "GPU: NVIDIA A100, vLLM version: 0.9.2", marlin_log(line=20 + n, size=4544 + 64 * n)
                ),
                created_at=MONDAY - (8 - 2 * n) * day,
                comments=n,
                state="closed" if n == 2 else "open",
                closed_at=MONDAY - 2 * day if n == 2 else None,
            )
            for n in (1, 2, 3)
        ),
        an_issue(
            FULL + 4, title="[Bug]: KeyError rope_scaling_factor", body=fenced("vLLM 0.9.2", rope_log())
        ),
        an_issue(FULL + 5, title="[Feature]: a flag for quiet start-up", body="It would be nice."),
        a_pull(PULL, title="Prefer Marlin for wide layers", merged_at=MONDAY - 30 * day),
        a_pull(
            PULL + 1, title="Pad the width that Marlin takes", body=f"Fixes #{FULL + 4}", merged_at=MONDAY
        ),
    ]


def _comments() -> list[CommentRecord]:
    return [
        a_comment(9001, FULL, "I can confirm: `--quantization awq` works here on 8 x H100.", author="second"),
        a_comment(9002, FULL, "Upgrading to 0.9.3rc1 did not help.", author="third"),
        a_comment(9003, FULL, "Fixed by #60051 in main.", author="maintainer", author_association="MEMBER"),
    ]
