"""One-page reports."""

from __future__ import annotations

from softrig.report import Report


def test_facts_read_left_and_have_no_head() -> None:
    report = Report("A soft arm")
    report.facts([("force error", "at most 1.5 % < 2 %"), ("clips", "bend, wave")])
    page = report.html()
    assert '<table class="facts"><tbody><tr><td>force error</td><td>at most 1.5 % &lt; 2 %</td></tr>' in page
    assert "<th>" not in page
    assert "table.facts td { text-align: left;" in page
    assert "table:not(.facts) :is(td, th):not(:first-child) { text-align: right; }" in page


def test_pictures_are_as_wide_as_the_page_whatever_their_pixels() -> None:
    report = Report("A soft arm")
    report.picture(b"GIF89a", "moving", "gif")
    assert "img { width: 100%;" in report.html()
