"""Small photographs, and overlays for frost that are not the published ones."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from sklearn.datasets import load_sample_images

from onedomain.data.corruptions.weather import OVERLAYS


@pytest.fixture(scope="session")
def photographs() -> np.ndarray:
    """48 pieces of the two photographs that come with scikit-learn, 32×32: real colours and shapes."""
    pieces = []
    for picture in load_sample_images().images:
        small = cv2.resize(picture, (256, 192), interpolation=cv2.INTER_AREA)
        pieces += [small[y : y + 32, x : x + 32] for y in range(0, 192, 16) for x in range(0, 224, 16)]
    shapely = np.stack([piece for piece in pieces if piece.shape[0] == 32 and piece.std() > 40])
    return shapely[np.linspace(0, len(shapely) - 1, 48).astype(int)]


@pytest.fixture(scope="session")
def overlays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "frost"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name in OVERLAYS:
        speckled = cv2.resize(rng.integers(0, 256, (60, 80, 3), dtype=np.uint8), (400, 300))
        cv2.imwrite(str(folder / name), speckled)
    return folder
