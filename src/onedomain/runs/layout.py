"""The names of everything in a run folder."""

from __future__ import annotations

from onedomain.data.within import RUN

MANIFEST = RUN  # what the run is: all settings, seed, versions, data fingerprint
METRICS = "metrics.jsonl"  # what training logged
CHECKPOINT = "checkpoint.pt"  # from which training resumes
WEIGHTS = "model.safetensors"  # of the trained network; written last, so that it means a finished run
AUXILIARY = "auxiliary.safetensors"  # what was learned beside the network, such as φ
CALIBRATION = "calibration.safetensors"  # what `out_of_domain` rests on
RESULTS = "results.jsonl"  # one record per domain and metric
BEFORE = "before.jsonl"  # in an adapted run, its parent's records of the images that it was scored on
OUTCOMES = "outcomes"  # the answers, image by image: one folder per benchmark, one file per domain
SNAPSHOTS = "snapshots"  # moments of training
AUGMENTED = ("augmented", "augmented-1")  # domains that the method made; of an ensemble the first network's

OWN = "own"  # stands for a benchmark where a user's own images were scored
ALL_UNSEEN = "all unseen"  # stands for a domain in records of what takes several domains
