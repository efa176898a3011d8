"""Speed as ratios, measured in one run on one thread: ours against the textbook version of the same mathematics.

python -m bench [NAME …]
"""

from __future__ import annotations

import sys

import torch

from bench import cluster, distributed, erm, methods, photographs, sdg, segmentation, uncertain_sdg

BENCHES = {
    "erm": erm.run,
    "sdg": sdg.run,
    "uncertain-sdg": uncertain_sdg.run,
    "methods": methods.run,
    "segmentation": segmentation.run,
    "photographs": photographs.run,
    "cluster": cluster.run,
    "distributed": distributed.run,
}


def main() -> None:
    torch.set_num_threads(1)
    for name in sys.argv[1:] or BENCHES:
        if name not in BENCHES:
            sys.exit(f"bench: {name!r} is not known; allowed: {', '.join(BENCHES)}")
        BENCHES[name]()


main()
