"""Turns of phrase that messages share: counts, figures, names that are not there, files that are missing."""

from __future__ import annotations

import difflib
import errno
import os
from collections.abc import Sequence
from itertools import islice

MOST_NEIGHBOURS = 1000
"""Files of a folder that are looked at for one that was meant."""


def counted(count: int, noun: str) -> str:
    """As "1 region", "2 regions", "1,000 regions"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def so_many_are(count: int, noun: str) -> str:
    """As "1 tet is", "2 tets are"."""
    return f"{counted(count, noun)} {'is' if count == 1 else 'are'}"


def figure(value: float) -> str:
    """Three figures, without an exponent where the number is large: "0.0848", "84.8", "8,480"."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{float(f'{value:.3g}'):,.0f}"


def millimetres(metres: float) -> str:
    """Two figures, or all before the point: "123 mm", "16 mm", "7.5 mm", "0.42 mm", "less than 0.01 mm"."""
    value = 1e3 * metres
    if 0.0 < value < 0.01:
        return "less than 0.01 mm"
    return f"{value:.0f} mm" if value >= 9.95 else f"{value:.2g} mm"


def quoted(names: Sequence[str]) -> str:
    """As "'walk', 'run'"; "none" of none."""
    return ", ".join(f"'{name}'" for name in names) or "none"


def nearest(name: str, known: Sequence[str]) -> str | None:
    """Which of the known names was likely meant: the same in other letter cases, or with a letter or two amiss."""
    folded = {each.casefold(): each for each in known}
    close = difflib.get_close_matches(name.casefold(), list(folded), 1)
    return folded[close[0]] if close else None


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """The tail of a message about a name that is not there; "" where no other comes near."""
    meant = nearest(name, known)
    return "" if meant is None else f", did you mean '{meant}'?"


def has_no(owner: str, what: str, names: Sequence[str], known: Sequence[str]) -> str:
    """That `owner` has no clip 'rnu', did you mean 'run'? and which there are; `what`: a clip, a part."""
    asked = did_you_mean(names[0], known) if len(names) == 1 else ""
    its = " Its" if asked else "; its"
    return f"'{owner}' has no {what} {quoted(names)}{asked}{its} {what}s: {quoted(known)}"


def none_called(what: str, name: str, known: Sequence[str]) -> str:
    """The same where nobody owns them: no clip is called 'rnu', did you mean 'run'? and which there are."""
    asked = did_you_mean(name, known)
    return f"no {what} is called '{name}'{asked}{' There' if asked else '; there'} are: {quoted(known)}"


def no_such_file(path: str | os.PathLike[str]) -> str:
    """That there is no such file, did you mean 'hero.glb'? of those beside it that end alike or nearly so."""
    folder, name = os.path.split(os.fspath(path))
    ending = os.path.splitext(name)[1]
    try:
        with os.scandir(folder or ".") as entries:
            beside = [entry.name for entry in islice(entries, MOST_NEIGHBOURS) if entry.name.isprintable()]
    except (OSError, ValueError):
        beside = []
    alike = [other for other in beside if other.endswith(ending)]
    nearly = [other for other in beside if nearest(ending, [os.path.splitext(other)[1]])]
    return f"there is no such file{did_you_mean(name, alike) or did_you_mean(name, nearly)}"


def told_by_system(error: OSError) -> str:
    """An error of the system in a line. Of a missing file in the words that are used everywhere."""
    if error.errno == errno.ENOENT and error.strerror == os.strerror(errno.ENOENT) and error.filename:
        return f"{error.filename}: {no_such_file(error.filename)}"
    return f"{error.strerror or error}: {error.filename or ''}"
