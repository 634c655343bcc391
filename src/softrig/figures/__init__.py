"""`softrig figures`: short clips and the papers' figures made again, each a picture with its numbers."""

from softrig.figures.run import FIGURES, figure_line, run_figures

__all__ = ["FIGURES", "figure_line", "run_figures"]
