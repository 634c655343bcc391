"""Tables and figures of records inside pages, so that no number in the documentation is typed by hand.

<!-- record: step -->                       the whole table of docs/records/step.json
<!-- end record -->

a step takes <!-- record: step: step(), r = 12 -->2.8 µs<!-- end record -->, one figure of it
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from softrig.bench.record import Record, read_record
from softrig.errors import InputError
from softrig.files import write_bytes

RECORDS = Path("docs/records")
"""Where the records of the documentation lie."""
MARKED = re.compile(r"<!-- record: (?P<name>[\w-]+)(?:: (?P<row>[^\n]+?))? -->(?P<text>.*?)<!-- end record -->", re.S)
OPENED = re.compile(r"<!-- record: |<!-- end record -->")


def read_records(folder: Path) -> dict[str, Record]:
    """All records of a folder, by name."""
    return {record.name: record for record in map(read_record, sorted(folder.glob("*.json")))}


def filled(text: str, records: dict[str, Record], page: str = "the page") -> str:
    """`text` with what stands between each pair of markers taken from `records`."""

    def fill(match: re.Match[str]) -> str:
        name, row = match["name"], match["row"]
        if name not in records:
            raise InputError(f"{page}: no record called '{name}'; there are {', '.join(records) or 'none'}")
        opening = match[0][: match.start("text") - match.start()]
        content = f"\n{records[name].body()}" if row is None else records[name].row(row).told()
        return f"{opening}{content}<!-- end record -->"

    if len(OPENED.findall(text)) != 2 * len(MARKED.findall(text)):
        raise InputError(f"{page}: a record marker without its end, or an end without its beginning")
    return MARKED.sub(fill, text)


def marked_records(text: str) -> list[str]:
    """The records that a page shows, by name."""
    return list(dict.fromkeys(match["name"] for match in MARKED.finditer(text)))


def fill_pages(paths: Sequence[Path], folder: Path = RECORDS) -> list[Path]:
    """Fill every page among `paths` (files, or folders of .md files) from the records in `folder`; those changed."""
    records = read_records(folder)
    changed = []
    for page in _pages(paths):
        text = page.read_text(encoding="utf-8")
        new = filled(text, records, str(page))
        if new != text:
            write_bytes(page, new.encode())
            changed.append(page)
    return changed


def _pages(paths: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise InputError(f"no page or folder called {path}")
        found += sorted(path.rglob("*.md")) if path.is_dir() else [path]
    return found
