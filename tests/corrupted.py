"""What records of a corrupted domain say beside its name."""

from __future__ import annotations

from onedomain.data.corruptions import KINDS, SEVERITIES, Corruption, in_record

CORRUPTED = {f"{kind}-{severity}": Corruption(kind, severity) for kind in KINDS for severity in SEVERITIES}


def keys_of(domain: str) -> dict[str, object]:
    return in_record(CORRUPTED.get(domain))
