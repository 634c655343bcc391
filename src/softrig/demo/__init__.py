"""`softrig demo`: a footbridge from triangles to a reduced model, and a crate dropped on it."""

from softrig.demo.run import Demo, run_demo

__all__ = ["Demo", "run_demo"]
