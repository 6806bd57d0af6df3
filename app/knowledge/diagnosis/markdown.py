"""A diagnosis as Markdown: for chats, tickets and bots. Foreign text stands in code, never as markup."""

from __future__ import annotations

from app.knowledge.diagnosis.shapes import Diagnosis
from app.knowledge.text.markdown import render_markdown


def diagnosis_markdown(diagnosis: Diagnosis) -> str:
    """The answer as Markdown with headings; ends with a line end."""
    return render_markdown("diagnosis.md", diagnosis=diagnosis)
