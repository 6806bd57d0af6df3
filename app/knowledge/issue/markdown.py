"""One issue, and the report on it, as Markdown: `templates/issue.md` and `templates/report.md`.

The report writes a figure only as its source does: a value that a rule derived (`12.9` from `cu129`) is shown
by its quote.
"""

from __future__ import annotations

import re
from functools import partial

from app.knowledge.issue.report import Report
from app.knowledge.issue.stored import figures_stand
from app.knowledge.issue.view import IssueAnswer
from app.knowledge.text.markdown import render_markdown
from app.knowledge.text.quoting import code, escape

BODY_CHARS_MAX = 70_000
"""GitHub's own limit is 65,536."""
QUOTES_MAX = 40
_REFERENCE = re.compile(r"(?<![\w/&\[.-])(?:[A-Za-z0-9][\w-]{0,50}/[\w.-]{1,100})?#\d{1,10}\b")
"""`#1`, or `owner/name#1` of another repository."""


def issue_markdown(issue: IssueAnswer) -> str:
    """The issue as Markdown, what helps first and its own text last."""
    return render_markdown("issue.md", issue=issue, quotes_max=QUOTES_MAX, body_max=BODY_CHARS_MAX)


def report_markdown(report: Report) -> str:
    """The report as Markdown with headings, for sharing."""
    facts = (*report.facts, *report.regression, *report.remedies, *((report.error,) if report.error else ()))
    quotes = tuple(quote for fact in facts for quote in fact.quotes)
    return render_markdown(
        "report.md",
        report=report,
        summary=report.summary if figures_stand(report.summary, quotes) else "",
        linked=partial(_linked, report.repo),
        reference=partial(_reference, report.repo),
    )


def _linked(repo: str, text: str) -> str:
    """A sentence of ours that may hold foreign words, its issue numbers as links."""
    return _REFERENCE.sub(lambda found: _reference(repo, found[0]), escape(text))


def _reference(repo: str, name: str) -> str:
    """The link to an issue that is named; inline code where the name is none."""
    owner, _, digits = name.rpartition("#")
    address = f"https://github.com/{owner or repo}/issues/{digits}"
    return f"[{name}]({address})" if _REFERENCE.fullmatch(name) else code(name)
