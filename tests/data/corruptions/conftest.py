from __future__ import annotations

import pytest

from onedomain.data import processes


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting processes takes seconds: only a test that asks for several has them."""
    monkeypatch.setattr(processes, "cores", lambda: 1)
