from __future__ import annotations

import time

import pytest


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""

    class Clock:
        now = 0.0

    monkeypatch.setattr(time, "monotonic", lambda: Clock.now)
    return Clock
