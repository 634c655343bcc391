"""The pages of parameters say when and on what their pictures were measured, as the records beside these have it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from docs_for_tests import ROOT

DOCS = ROOT / "docs"
PICTURES = DOCS / "pictures" / "parameters"
RECORDS = sorted(PICTURES.glob("*.json"))

sys.path.insert(0, str(DOCS / "pictures"))
from parameter_pictures.picture import MEASURED, measured, records_of, write_measured  # noqa: E402

PAGES = [page for page in sorted(DOCS.rglob("*.md")) if records_of(page.read_text(encoding="utf-8"), PICTURES)]


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_records_say_when_and_on_what(record: Path) -> None:
    told = json.loads(record.read_text(encoding="utf-8"))
    assert len(told["date"]) == len("2026-01-31")
    assert told["machine"]["processor"]
    assert {"softrig", "numpy", "scipy", "numba"} <= set(told["machine"]["versions"])


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_pages_say_once_when_and_on_what_their_pictures_were_measured(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert MEASURED.findall(text) == [measured(records_of(text, PICTURES))]


def test_the_sentence_is_written_again_where_pictures_were_made_again(tmp_path: Path) -> None:
    machine = {"processor": "A", "cores": 2, "system": "Linux", "load": 1.0, "versions": {"softrig": "0.1.0"}}
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n![one](pictures/parameters/one.png)\n\n![two](pictures/parameters/two.svg)\n")
    for name, date, load in (("one", "2026-01-02", 0.5), ("two", "2026-01-03", 2.5)):
        record = {"date": date, "machine": {**machine, "load": load}}
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    write_measured(tmp_path, tmp_path)
    assert page.read_text().endswith(
        ".svg)\n\nMeasured 2026-01-02 to 2026-01-03 on A, 2 cores; Linux; softrig 0.1.0.\n"
    )
    (tmp_path / "one.json").write_text(json.dumps({"date": "2026-01-03", "machine": {**machine, "processor": "B"}}))
    write_measured(tmp_path, tmp_path)
    last = "Measured 2026-01-03 on B, 2 cores; Linux; softrig 0.1.0 and on A, 2 cores; Linux; softrig 0.1.0."
    assert page.read_text().count("Measured") == 1
    assert page.read_text().endswith(f".svg)\n\n{last}\n")
