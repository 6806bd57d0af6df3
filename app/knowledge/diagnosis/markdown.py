"""A diagnosis as Markdown: for chats, tickets and bots. Foreign text stands in code, never as markup."""

from __future__ import annotations

from app.knowledge.diagnosis.shapes import Diagnosis
from app.knowledge.fix.shapes import FixView
from app.knowledge.text.markdown import render_markdown


def diagnosis_markdown(diagnosis: Diagnosis) -> str:
    """The answer as Markdown with headings; ends with a line end."""
    return render_markdown("diagnosis.md", diagnosis=diagnosis)


def fix_words(fix: FixView) -> str:
    """A fix state in words, as Markdown."""
    return render_markdown("fix_words.md", fix=fix).strip()
