"""Guess what each part of a character is for the simulation: soft, rigid, or following the body."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Role = Literal["soft", "rigid", "follows"]
ROLES: tuple[Role, ...] = ("soft", "rigid", "follows")

_RIGID = re.compile(
    r"(?<!brow)(eye(?!lash|brow|lid)|iris|pupil|cornea|sclera|teeth|tooth|dent(al|ure)|fang|claw|tusk|horn|nail|glass(es)?"
    r"|goggle|helmet|armou?r|weapon|sword|shield|gun|buckle|button|jewel|watch|ring\b)"
)
_FOLLOWS = re.compile(
    r"(eyelash|eyebrow|brow|lash|cloth|shirt|pants|trouser|jeans|dress|skirt|coat|jacket|hood|sleeve|sock|shoe|boot|glove"
    r"|hat|cap\b|hair|beard|moustache|mustache|wig|scarf|belt|cape|cloak|tie\b|outfit|top\b|bottom|suit|underwear|bra\b)"
)
_SOFT = re.compile(
    r"(body|skin|flesh|face|head|torso|chest|belly|arm(?!ou?r)|leg|hand|foot|feet|tongue|eyelid|ear\b|tail|neck)"
)
_BODY_SHARE = 0.6
"""A part of at least this share of the largest part's area is a body in its own right."""


@dataclass(frozen=True)
class PartFacts:
    """What the guess is made from."""

    name: str
    area: float
    """Square metres at rest."""
    one_bone: bool
    """Whether a single bone or node carries all its vertices."""
    joined: frozenset[int] = frozenset()
    """Other parts whose vertices coincide with its own, and would be welded to them."""


def guess_roles(parts: Sequence[PartFacts]) -> tuple[Role, ...]:
    """A role for each part: the name decides first, then how it is carried, then what it is joined to.

    The largest part that neither its name nor a single bone rules out is the body, and soft.
    """
    named: list[Role | None] = [_by_name(part.name) for part in parts]
    body = _body(parts, named)
    roles: list[Role] = []
    for index, part in enumerate(parts):
        own = named[index]
        if index == body:
            roles.append("soft")
        elif own is not None and not (own == "soft" and part.one_bone):
            roles.append(own)
        elif part.one_bone:
            roles.append("rigid")
        elif body in part.joined or part.area >= _BODY_SHARE * parts[body].area:
            roles.append("soft")
        else:
            roles.append("follows")
    return tuple(roles)


def _by_name(name: str) -> Role | None:
    lowered = re.sub(r"[_\-.\s]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)).lower()
    if _FOLLOWS.search(lowered):
        return "follows"
    if _RIGID.search(lowered):
        return "rigid"
    return "soft" if _SOFT.search(lowered) else None


def _body(parts: Sequence[PartFacts], named: Sequence[Role | None]) -> int:
    """The largest part that may be soft; if none may, the largest of all."""
    candidates = [i for i, part in enumerate(parts) if named[i] in (None, "soft") and not part.one_bone]
    candidates = candidates or [i for i in range(len(parts)) if named[i] in (None, "soft")] or list(range(len(parts)))
    return max(candidates, key=lambda i: parts[i].area, default=-1)
