"""How many images pass through a network at once: only a matter of memory."""

from __future__ import annotations

PIXELS = 2**20  # without gradients: 1,024 images of 32×32, 24 of 180×240
PIXELS_WITH_GRADIENTS = 2**18  # features are kept for the way back: 6 images of 180×240


def images_at_once(height: int, width: int, most: int, pixels: int = PIXELS, classes: int = 1) -> int:
    """At most `most` images; fewer if they are large, or if each pixel has probabilities of many classes.

    >>> images_at_once(32, 32, 250), images_at_once(180, 240, 250), images_at_once(180, 240, 250, classes=150)
    (250, 24, 2)
    """
    return max(1, min(most, pixels // (height * width * max(1, classes // 16))))
