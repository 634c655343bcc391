"""`softrig demo`: a soft gorilla, from surface to baked clip; and a footbridge with a crate dropped on it."""

from softrig.demo.character import CharacterDemo, run_character_demo
from softrig.demo.run import Demo, run_demo

__all__ = ["CharacterDemo", "Demo", "run_character_demo", "run_demo"]
