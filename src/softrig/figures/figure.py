"""A figure: a picture, which may move, the numbers measured while it was made, and what one sees. Also their page."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.spatial import cKDTree

from softrig.bench.record import Record, Row, Sizes
from softrig.errors import InputError
from softrig.files import write_bytes
from softrig.machine import Machine, this_machine

KEPT = 48
"""Colours of a picture that are kept as they are."""


@dataclass(frozen=True, eq=False)
class Figure:
    """What a figure's function gives back."""

    record: Record
    """Its numbers; the record's name and title are the figure's."""
    caption: str
    """What one sees and what it shows, for people."""
    alt: str
    """The same in a sentence with its most telling number, for those who do not see the picture."""
    picture: bytes
    """PNG."""

    @property
    def name(self) -> str:
        """Of its files."""
        return self.record.name

    def write(self, folder: Path, seconds: float) -> None:
        """`name.png` and `name.json` in `folder`; `seconds` is how long it took to make."""
        folder.mkdir(parents=True, exist_ok=True)
        record = asdict(replace(self.record, seconds=round(seconds, 1)))
        content = {"caption": self.caption, "alt": self.alt, "picture": f"{self.name}.png", "record": record}
        write_bytes(folder / f"{self.name}.png", self.picture)
        write_bytes(folder / f"{self.name}.json", (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


@dataclass(frozen=True, eq=False)
class Shown:
    """A figure as it lies in a folder."""

    record: Record
    caption: str
    alt: str
    picture: str
    """Name of the file."""


def made(
    name: str,
    title: str,
    picture: np.ndarray,
    rows: Sequence[Row],
    caption: str,
    *,
    alt: str,
    value: str = "measured",
    remark: str = "",
    sizes: Sizes | None = None,
) -> Figure:
    """A figure of a picture (h, w, 3) uint8 and rows measured on this machine.

    `value` heads the column of the rows' own figures: the same words as in the picture, or "measured" where each row
    names what it is of.
    """
    return made_of(name, title, png_bytes(picture), rows, caption, alt=alt, value=value, remark=remark, sizes=sizes)


def made_of(
    name: str,
    title: str,
    picture: bytes,
    rows: Sequence[Row],
    caption: str,
    *,
    alt: str,
    value: str = "measured",
    remark: str = "",
    sizes: Sizes | None = None,
) -> Figure:
    """As `made`, of the content of a PNG, which may move."""
    return Figure(Record(name, title, this_machine(), tuple(rows), remark, sizes or {}, value), caption, alt, picture)


def png_bytes(picture: np.ndarray) -> bytes:
    """(h, w, 3) uint8 as a PNG of 256 colours, a third of the bytes.

    The colours found most often, paper, letters and lines, are kept; the others are fitted to all that occur, each
    counted once, so that what is small has its share.
    """
    packed = picture.astype(np.uint32) @ np.array([65536, 256, 1], np.uint32)
    codes, which, counts = np.unique(packed.ravel(), return_inverse=True, return_counts=True)
    colours = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=1).astype(np.uint8)
    kept = colours[np.argsort(-counts, kind="stable")[:KEPT]]
    fitted = Image.fromarray(colours[None]).quantize(256 - KEPT, method=Image.Quantize.MEDIANCUT, kmeans=2)
    palette = np.concatenate([kept, np.array(fitted.getpalette() or [], np.uint8).reshape(-1, 3)])[:256]
    nearest = cKDTree(palette.astype(np.float64)).query(colours.astype(np.float64))[1]
    image = Image.fromarray(nearest[which].reshape(picture.shape[:2]).astype(np.uint8))
    image.putpalette(palette.ravel().tolist())
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def read_figures(folder: Path) -> list[Shown]:
    """Every figure whose record lies in `folder`, by name."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            record = _record(content["record"])
            # Records of before pictures had words of their own for those who cannot see them.
            found.append(Shown(record, content["caption"], content.get("alt", record.title), content["picture"]))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}: not the record of a figure: {error!r}") from error
    return found


def _record(content: dict[str, Any]) -> Record:
    rows = tuple(Row(**row) for row in content["rows"])
    return Record(**{**content, "rows": rows, "machine": Machine(**content["machine"])})


def write_index(folder: Path, order: Sequence[str]) -> Path:
    """`index.md` from all records in `folder`, those named in `order` first and in that order."""
    place = {name: index for index, name in enumerate(order)}
    found = sorted(read_figures(folder), key=lambda figure: place.get(figure.record.name, len(place)))
    head = [
        "# Gallery",
        "",
        "Short clips, and the papers' figures made again, all on generated bodies: a picture, what one sees, and the "
        "numbers measured while it was made. PSSD is Xu and Barbič 2016, StVK05 is Barbič and James 2005, SUB11 is "
        "Barbič and Zhao 2011; columns named after them hold what they print. This page is written by "
        "`softrig figures`.",
        "",
        *_contents(found),
    ]
    page = "\n".join(head) + "\n" + "".join(_section(figure) for figure in found)
    write_bytes(folder / "index.md", page.encode())
    return folder / "index.md"


def _contents(figures: Sequence[Shown]) -> list[str]:
    """A line of links for each kind, by what stands before the colon of their titles."""
    kinds: dict[str, list[str]] = {}
    for record in (figure.record for figure in figures):
        kind, _, rest = record.title.partition(": ")
        before, _, place = kind.rpartition(" Figure ")
        kinds.setdefault(before or "Clips", []).append(f"[{place if before else rest}](#{record.name})")
    return [f"- {kind}{' Figures' if kind != 'Clips' else ''}: {', '.join(links)}" for kind, links in kinds.items()]


def _section(figure: Shown) -> str:
    record = figure.record
    alt = figure.alt.replace('"', "'").replace("]", "").replace("[", "")
    seconds = f", {record.seconds:.0f} s" if record.seconds is not None else ""
    return (
        f'\n<a id="{record.name}"></a>\n\n## {record.title}\n\n![{alt}]({figure.picture})\n\n{figure.caption}\n\n'
        f"{record.folded()}\n`softrig figures {record.name}`{seconds}.\n"
    )
