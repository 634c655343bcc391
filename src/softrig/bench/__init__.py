"""`softrig bench`: what things cost on this machine, beside the published and the peers' figures."""

from softrig.bench.catalogue import BENCHES
from softrig.bench.pages import fill_pages
from softrig.bench.run import listing, run_benches

__all__ = ["BENCHES", "fill_pages", "listing", "run_benches"]
