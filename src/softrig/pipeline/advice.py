"""Poses worth adding: where rest tets turn inside out along the clips, or bases of neighbouring poses differ widely."""

from __future__ import annotations

import numpy as np

from softrig.models.pose_space import PoseSpaceModel
from softrig.poses.selection import suggest_poses
from softrig.poses.tet_rig import inverted_rest_tets

FPS = 10.0
"""Frames a second at which clips are looked at."""


def pose_advice(model: PoseSpaceModel) -> dict[str, object]:
    """For the model's notes: inverted rest tets of each clip, and suggested poses with their reasons."""
    inverted, told = {}, {}
    for clip in model.clips:
        _, frames = clip.resample(FPS)
        report = inverted_rest_tets(model.tet_rest, frames, model.vertices, model.tets)
        inverted[clip.name] = report.counts
        told[clip.name] = {
            "most": int(report.counts.max(initial=0)),
            "volume share": float(report.volume_shares.max(initial=0.0)),
        }
    basis = model.notes.get("basis", {})
    angles = np.radians(np.array(basis["subspace angles"])) if basis.get("subspace angles") else None
    suggestions = suggest_poses(
        model.rig,
        model.clips,
        model.poses.names,
        model.poses.parameters,
        tree=[(int(i), int(j)) for i, j in basis.get("tree", [])],
        angles=angles,
        inverted=inverted,
        fps=FPS,
        ignored=[name for name in model.rig.parameters.names if name.endswith(".weight")],
    )
    return {
        "inverted rest tets": told,
        "suggested poses": [{"name": pose.name, "reason": pose.reason} for pose in suggestions],
    }
