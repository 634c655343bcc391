"""What the body is made of: Young's modulus, Poisson ratio and density, one value or one an element."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softrig.errors import InputError, MaterialError, require_finite


@dataclass(frozen=True)
class Material:
    """Isotropic elastic material in SI units; each property a number or an array (elements,)."""

    young: float | np.ndarray
    """Young's modulus, pascal, > 0. Fat about 1e4, muscle 5e4, rubber 1e6, wood 1e10."""
    poisson: float | np.ndarray
    """Poisson ratio, -1 < ν < 0.5. Soft tissue 0.45 to 0.49."""
    density: float | np.ndarray
    """kilogram per cubic metre, > 0. Soft tissue about 1000."""

    def __post_init__(self) -> None:
        sizes = {np.size(getattr(self, name)) for name in ("young", "poisson", "density")} - {1}
        if len(sizes) > 1:
            raise InputError(f"material properties of different lengths: {sorted(sizes)}")
        for name in ("young", "poisson", "density"):
            require_finite(np.asarray(getattr(self, name), dtype=np.float64), f"material {name}")
        _require(np.asarray(self.young) > 0.0, "Young's modulus must be positive")
        _require(np.asarray(self.density) > 0.0, "density must be positive")
        poisson = np.asarray(self.poisson)
        _require((poisson < 0.5) & (poisson > -1.0), "Poisson ratio must lie between -1 and 0.5, both excluded")

    @classmethod
    def from_lame(cls, lam: float | np.ndarray, mu: float | np.ndarray, density: float | np.ndarray) -> Material:
        """The material with Lamé constants λ, μ (pascal)."""
        lam, mu = np.asarray(lam, dtype=np.float64), np.asarray(mu, dtype=np.float64)
        _require(mu > 0.0, "the shear modulus μ must be positive")
        return cls(young=mu * (3.0 * lam + 2.0 * mu) / (lam + mu), poisson=0.5 * lam / (lam + mu), density=density)

    def lame(self) -> tuple[np.ndarray, np.ndarray]:
        """(λ, μ), pascal (StVK05 Eq. 26)."""
        young, poisson = np.asarray(self.young, np.float64), np.asarray(self.poisson, np.float64)
        lam = poisson * young / ((1.0 + poisson) * (1.0 - 2.0 * poisson))
        return lam, young / (2.0 * (1.0 + poisson))

    def per_element(self, elements: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(λ, μ, ρ), each (elements,)."""
        fields = (*self.lame(), np.asarray(self.density, np.float64))
        for name, field in zip(("young or poisson", "young or poisson", "density"), fields, strict=True):
            if field.ndim and field.shape != (elements,):
                raise InputError(f"material {name} has {field.size} values for {elements} elements")
        # Always arrays of their own: to the compiler one that may not be written is of another type.
        lam, mu, rho = (np.array(np.broadcast_to(field, elements)) for field in fields)
        return lam, mu, rho


def _require(holds: np.ndarray, message: str) -> None:
    if not holds.all():
        raise MaterialError(message, np.nonzero(~np.atleast_1d(holds))[0] if holds.ndim else ())
