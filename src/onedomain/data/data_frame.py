"""Rows as a DataFrame of pandas, for those who have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onedomain.errors import UserError


def data_frame(rows: Sequence[dict[str, Any]]) -> Any:
    try:
        import pandas
    except ImportError:
        raise UserError("to_frame", "needs pandas, which is not installed", "pip install pandas") from None
    return pandas.DataFrame(rows)
