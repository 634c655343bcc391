"""`softrig bench`: what things cost on this machine, beside the published and the peers' figures."""

from softrig.bench.run import BENCHES, run_benches

__all__ = ["BENCHES", "run_benches"]
