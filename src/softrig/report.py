"""One-page reports: HTML with everything inside, to be opened from anywhere."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5b6675; --line: #d9dee6; --paper: #ffffff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf0; --soft: #9aa5b5; --line: #333c49; --paper: #161b22; }
}
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem;
  margin: 2.5rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.9rem; margin-bottom: .2rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
p.lead, footer, figcaption { color: var(--soft); } footer { font-size: .85rem; margin-top: 3rem; }
figure { margin: 1.2rem 0; } img { width: 100%; border-radius: 8px; display: block; }
.plot { background: #ffffff; border-radius: 8px; } .plot svg { max-width: 100%; height: auto; display: block; }
table { border-collapse: collapse; width: 100%; margin: .8rem 0; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); }
table:not(.facts) :is(td, th):not(:first-child) { text-align: right; }
table.facts td { text-align: left; vertical-align: top; } table.facts td:first-child { white-space: nowrap; }
"""


class Report:
    """Collects parts in order; `html()` is the page."""

    def __init__(self, title: str, lead: str = "") -> None:
        self._title = title
        self._parts = [f"<h1>{escape(title)}</h1>"]
        if lead:
            self._parts.append(f'<p class="lead">{escape(lead)}</p>')

    def heading(self, text: str) -> None:
        """A section begins."""
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def text(self, text: str) -> None:
        """A paragraph."""
        self._parts.append(f"<p>{escape(text)}</p>")

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table; the first column reads left, numbers right."""
        cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        self._parts.append(f"<table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>")

    def facts(self, rows: Sequence[tuple[str, str]]) -> None:
        """What and how much, in words: both read left, and need no head."""
        lines = "".join(f"<tr><td>{escape(what)}</td><td>{escape(value)}</td></tr>" for what, value in rows)
        self._parts.append(f'<table class="facts"><tbody>{lines}</tbody></table>')

    def picture(self, content: bytes, caption: str, kind: str = "png") -> None:
        """A picture from the bytes of its file ("png" or "gif"), stored in the page."""
        source = f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
        self._figure(f'<img src="{source}" alt="{escape(caption)}">', caption)

    def plot(self, svg: str, caption: str) -> None:
        """A plot as made by `softrig.render.line_plot`."""
        self._figure(f'<div class="plot">{svg}</div>', caption)

    def footer(self, text: str) -> None:
        """Small print."""
        self._parts.append(f"<footer>{escape(text)}</footer>")

    def html(self) -> str:
        """The whole page."""
        metas = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        head = f"{metas}<title>{escape(self._title)}</title><style>{_STYLE}</style>"
        body = "\n".join(self._parts)
        return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'

    def _figure(self, content: str, caption: str) -> None:
        self._parts.append(f"<figure>{content}<figcaption>{escape(caption)}</figcaption></figure>")
