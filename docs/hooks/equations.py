"""Equations at build time: $…$ and $$…$$ in a page become MathML, which browsers draw without any script.

Code, inline or fenced, is left alone. `on_config` is called by MkDocs.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markdown import Markdown  # type: ignore[import-untyped]
from markdown.extensions import Extension  # type: ignore[import-untyped]
from markdown.inlinepatterns import InlineProcessor  # type: ignore[import-untyped]

DISPLAYED = r"\$\$(.+?)\$\$"
INLINE = r"(?<![\\$\w])\$(?=[^\s$])([^$]*?[^\s$\\])\$(?![\w$])"
SMALL_BRACKET = r"\\[bB]ig+[lr]?\s*(?:[)\]|.]|\\[}|]|\\r\w+)\s*[\^_]"
"""A closing bracket of a fixed size with an index: browsers draw it as small as a letter."""
AFTER_CODE = 188
"""Between the code in backticks (190) and the backslashes (180), which TeX needs for itself."""


@cache
def mathml(tex: str, displayed: bool) -> str:
    """MathML of a formula in TeX; a formula that cannot be read is an error that shows it."""
    if small := re.search(SMALL_BRACKET, tex):
        raise ValueError(f"{small.group()} in {tex!r} is drawn too small: use \\left( … \\right)")
    found = convert(" ".join(tex.split()), display="block" if displayed else "inline")
    broken = re.search(r"\\\S+", re.sub(r"<[^>]*>", "", found))
    if broken:
        raise ValueError(f"no MathML for {broken.group()} in {tex!r}")
    return found


class Equation(InlineProcessor):
    """One kind of dollar signs."""

    def __init__(self, pattern: str, md: Markdown, *, displayed: bool) -> None:
        super().__init__(pattern, md)
        self._displayed = displayed

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str | ElementTree.Element, int, int]:
        """The MathML, stashed so that nothing else is read in it."""
        text = mathml(m.group(1), self._displayed)
        if self._displayed:
            text = f'<span class="equation">{text}</span>'
        return self.md.htmlStash.store(text), m.start(0), m.end(0)


class Equations(Extension):
    """Both kinds."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register the patterns, the longer first."""
        flags = re.DOTALL
        for name, pattern, displayed in (("displayed", DISPLAYED, True), ("inline", INLINE, False)):
            processor = Equation(pattern, md, displayed=displayed)
            processor.compiled_re = re.compile(pattern, flags)
            md.inlinePatterns.register(processor, f"{name}-equation", AFTER_CODE + 0.5 * displayed)


def on_config(config: Any) -> Any:
    """Add the extension to those of the site."""
    config["markdown_extensions"].append(Equations())
    return config
