"""From a character to a model that moves, and from a model to baked clips: the front door of the library."""
