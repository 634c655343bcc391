"""A picture, the settings it shows, and its caption: a sentence whose numbers are kept apart from its words.

The words hold no digit of their own: all numbers come from the run that made the picture, and stand in the record
beside it, from which a test makes the page's caption again.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from softrig.files import write_bytes
from softrig.machine import this_machine

COLOURS = 256
"""Of a picture's palette: keeps each file small."""
SHOWN = re.compile(r"!\[[^\]]*\]\([^)]*parameters/([\w-]+)\.(?:png|svg)\)")
MEASURED = re.compile(r"^Measured \d{4}-\d\d-\d\d[^\n]*$", re.MULTILINE)


@dataclass(frozen=True, eq=False)
class Picture:
    """What a setting does."""

    image: np.ndarray | str
    """Pixels (h, w, 3), or the text of an SVG."""
    settings: tuple[str, ...]
    """As "table.key"."""
    caption: str = ""
    """With the names of `numbers` in braces, and how each is written: "{low:.0f} mm"."""
    numbers: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # As the record keeps them, so that both tell the same caption.
        object.__setattr__(self, "numbers", {key: float(f"{value:.6g}") for key, value in self.numbers.items()})

    @property
    def told(self) -> str:
        """The caption with its numbers."""
        return self.caption.format(**self.numbers)


def write_picture(name: str, picture: Picture, folder: Path) -> Path:
    """A PNG with a palette or an SVG, and its record."""
    if isinstance(picture.image, str):
        path, content = folder / f"{name}.svg", picture.image.encode()
    else:
        path, buffer = folder / f"{name}.png", io.BytesIO()
        _with_palette(Image.fromarray(picture.image)).save(buffer, format="PNG", optimize=True)
        content = buffer.getvalue()
    write_bytes(path, content)
    if picture.caption:
        record = {
            "settings": list(picture.settings),
            "caption": picture.caption,
            "numbers": picture.numbers,
            "date": datetime.now(tz=UTC).date().isoformat(),
            "machine": asdict(this_machine()),
        }
        write_bytes(folder / f"{name}.json", (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())
    return path


def _with_palette(full: Image.Image) -> Image.Image:
    """`full` in few colours, one of them the white of the page."""
    white = COLOURS - 1
    fitted = full.quantize(white, kmeans=2)
    colours = (fitted.getpalette() or [])[: 3 * white]
    fitted.putpalette([*colours, *[255] * (3 * COLOURS - len(colours))])
    # Errors are spread only over a palette that is given; its search takes what is nearly white for white.
    indices = np.array(full.quantize(palette=fitted, dither=Image.Dither.FLOYDSTEINBERG))
    indices[(np.asarray(full) == 255).all(axis=2)] = white
    reduced = Image.fromarray(indices)
    reduced.putpalette(fitted.getpalette() or [])
    return reduced


def write_kept_caption(name: str, folder: Path, pages: Path) -> None:
    """Put the caption of a picture's record under it."""
    record = folder / f"{name}.json"
    if record.exists():
        kept = json.loads(record.read_text(encoding="utf-8"))
        for ending in ("png", "svg"):
            write_caption(f"{name}.{ending}", kept["caption"].format(**kept["numbers"]), pages)


def write_caption(file: str, caption: str, pages: Path) -> bool:
    """Put a caption under the picture wherever a page of `pages` shows it; whether one does."""
    place = re.compile(rf"^(!\[[^\]]*\]\([^)]*parameters/{re.escape(file)}\))\n(?:\n\*[^\n]+\*\n)?", re.MULTILINE)
    shown = False
    for page in sorted(pages.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        changed = place.sub(lambda found: f"{found[1]}\n" + (f"\n*{caption}*\n" if caption else ""), text)
        shown = shown or place.search(text) is not None
        if changed != text:
            write_bytes(page, changed.encode())
    return shown


def measured(records: Sequence[Mapping[str, Any]]) -> str:
    """When and on what the pictures of `records` were made, in a sentence; no number of theirs depends on the load."""
    dates = sorted({record["date"] for record in records})
    machines = []
    for machine in (record["machine"] for record in records):
        packages = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
        told = f"{machine['processor']}, {machine['cores']} cores; {machine['system']}; {packages}"
        if told not in machines:
            machines.append(told)
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return f"Measured {when} on {' and on '.join(machines)}."


def records_of(text: str, folder: Path) -> list[dict[str, Any]]:
    """The records in `folder` of the pictures that a page's text shows, in its order."""
    paths = [folder / f"{name}.json" for name in SHOWN.findall(text)]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]


def write_measured(folder: Path, pages: Path) -> None:
    """Say at the end of every page that shows pictures with records when and on what these were made."""
    for page in sorted(pages.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        records = [record for record in records_of(text, folder) if "date" in record]
        if not records:
            continue
        line = measured(records)
        changed = MEASURED.sub(lambda _, line=line: line, text) if MEASURED.search(text) else f"{text}\n{line}\n"
        if changed != text:
            write_bytes(page, changed.encode())
