"""Multi-domain models as tensors and a JSON document, for the model file (`models.file`).

What follows from vertices, shapes and tets (all sandwiches) is not stored: it is summed anew when a model is stepped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from softrig.errors import InputError
from softrig.models.multi_domain import Domain, MultiDomainModel, Seam
from softrig.rig.protocol import Rig
from softrig.rig.record import clips_from_record, clips_record, integer_arrays, rig_from_record, rig_record

Arrays = dict[str, np.ndarray]

_PLAIN = ("vertices", "tets", "domain_of_tet", "triangles", "embedding_nodes", "embedding_weights")
_DOMAIN = ("centre", "members", "mass", "shapes", "stiffness", "cubature", "weights", "lam", "mu")
_SEAM = ("first_rows", "second_rows", "areas")
_NUMBERS = ("spring", "spring_damping", "damping_ratio", "frequency", "size")
_FIELDS = {"members": "vertices", "cubature": "tets"}
"""Names of tensors that are another's of the whole body."""
_INTEGERS = (
    "tets",
    "domain_of_tet",
    "triangles",
    "embedding_nodes",
    "members",
    "cubature",
    "first_rows",
    "second_rows",
)
MOST_DOMAINS = 4096
"""More than any rig has bones."""


def domain_tensors(model: MultiDomainModel) -> Arrays:
    """All tensors of `model`, the document among them."""
    arrays: Arrays = {name: getattr(model, name) for name in _PLAIN}
    if model.colours is not None:
        arrays["colours"] = model.colours
    for index, domain in enumerate(model.domains):
        arrays |= {f"domain.{index}.{name}": getattr(domain, _FIELDS.get(name, name)) for name in _DOMAIN}
    for index, seam in enumerate(model.seams):
        arrays |= {f"seam.{index}.{name}": getattr(seam, name) for name in _SEAM}
    document = {
        "name": model.name,
        "law": model.law,
        "domains": [[domain.name, domain.bone] for domain in model.domains],
        "seams": [[seam.first, seam.second] for seam in model.seams],
        **{name: getattr(model, name) for name in _NUMBERS},
        "rig": rig_record(model.rig, arrays),
        "clips": clips_record(model.clips, arrays),
        "notes": model.notes,
    }
    arrays["document"] = np.frombuffer(json.dumps(document).encode(), np.uint8)
    return {name: np.ascontiguousarray(array, domain_dtype(name)) for name, array in arrays.items()}


def model_from_domain_tensors(arrays: Mapping[str, np.ndarray], rig: Rig | None) -> MultiDomainModel:
    """The model again; `rig` takes the place of the rig in the file."""
    document: dict[str, Any] = json.loads(arrays["document"].tobytes())
    if rig is None:
        rig = rig_from_record(document["rig"], arrays)
    named, joined = document["domains"], document["seams"]
    if max(len(named), len(joined)) > MOST_DOMAINS:
        raise InputError(f"{len(named)} domains and {len(joined)} seams: no character")
    if not isinstance(document["notes"], dict):
        raise InputError("the notes are no table")
    domains = tuple(
        Domain(
            name=str(name),
            bone=int(bone),
            **{_FIELDS.get(each, each): arrays[f"domain.{index}.{each}"] for each in _DOMAIN},
        )
        for index, (name, bone) in enumerate(named)
    )
    seams = tuple(
        Seam(int(first), int(second), *(arrays[f"seam.{index}.{each}"] for each in _SEAM))
        for index, (first, second) in enumerate(joined)
    )
    plain: dict[str, Any] = {name: float(document[name]) for name in _NUMBERS}
    plain |= {name: arrays[name] for name in _PLAIN}
    return MultiDomainModel(
        name=str(document["name"]),
        law=str(document["law"]),
        rig=rig,
        domains=domains,
        seams=seams,
        colours=arrays.get("colours"),
        clips=clips_from_record(document["clips"], arrays, rig.parameters),
        notes=document["notes"],
        **plain,
    )


def domain_dtype(name: str) -> type:
    """What the tensor called `name` is stored as."""
    if name == "document":
        return np.uint8
    if name.startswith(("rig.", "clip.")):
        return np.int32 if integer_arrays(name) else np.float64
    return np.int32 if name.rpartition(".")[2] in _INTEGERS else np.float64
