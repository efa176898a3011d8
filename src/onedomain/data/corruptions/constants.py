"""How strong each corruption is: the constants of CIFAR-10-C, and those of ImageNet-C for larger images.

As published by Hendrycks and Dietterich (github.com/hendrycks/robustness, ImageNet-C/create_c): `make_cifar_c.py` and
`make_imagenet_c.py`. Each was compared with a second public source that holds both sets, Facebook's
augmentation-corruption. One entry per severity, 1 to 5; lengths are in pixels, whatever the size of the image.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Constants = Mapping[str, tuple[Any, Any, Any, Any, Any]]

CIFAR10_C: Constants = {
    # weight of the fog, how fast its detail fades with scale
    "fog": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    # mean and deviation of flakes, zoom, threshold, radius and sigma of their fall, share of the image that is kept
    "snow": (
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ),
    # weights of image and overlay, scale of the overlay
    "frost": ((1, 0.2, 0.2), (1, 0.3, 0.2), (0.9, 0.4, 0.2), (0.85, 0.4, 0.2), (0.75, 0.45, 0.2)),
    # zooms: from 1 up to, by steps of
    "zoom-blur": ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
    # radius of the disk, sigma that smooths its rim
    "defocus-blur": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    # sigma, how far a pixel comes from, how often
    "glass-blur": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    # sigma
    "gaussian-blur": (0.4, 0.6, 0.7, 0.8, 1),
    # radius and sigma
    "motion-blur": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    # deviation, as a share of the pixel's value
    "speckle-noise": (0.06, 0.1, 0.12, 0.16, 0.2),
    # photons of a white pixel
    "shot-noise": (500, 250, 100, 75, 50),
    # share of the values that become black or white
    "impulse-noise": (0.01, 0.02, 0.03, 0.05, 0.07),
    # deviation
    "gaussian-noise": (0.04, 0.06, 0.08, 0.09, 0.10),
    # quality
    "jpeg-compression": (80, 65, 58, 50, 40),
    # share of the side that is left
    "pixelate": (0.95, 0.9, 0.85, 0.75, 0.65),
    # mean, deviation and smoothness of the liquid, threshold, strength (of mud: sigma), whether it is mud
    "spatter": (
        (0.62, 0.1, 0.7, 0.7, 0.5, False),
        (0.65, 0.1, 0.8, 0.7, 0.5, False),
        (0.65, 0.3, 1, 0.69, 0.5, False),
        (0.65, 0.1, 0.7, 0.69, 0.6, True),
        (0.65, 0.1, 0.5, 0.68, 0.6, True),
    ),
    # length of the displacements, their smoothness, how far the corners of the affine map move
    "elastic-transform": (
        (32 * 0, 32 * 0, 32 * 0.08),
        (32 * 0.05, 32 * 0.2, 32 * 0.07),
        (32 * 0.08, 32 * 0.06, 32 * 0.06),
        (32 * 0.1, 32 * 0.04, 32 * 0.05),
        (32 * 0.1, 32 * 0.03, 32 * 0.03),
    ),
    # what is added to the value of HSV
    "brightness": (0.05, 0.1, 0.15, 0.2, 0.3),
    # factor and offset of the saturation of HSV
    "saturate": ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
    # factor of the distance from the mean colour
    "contrast": (0.75, 0.5, 0.4, 0.3, 0.15),
}

IMAGENET_C: Constants = {
    "fog": ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
    "snow": (
        (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
        (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
        (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
        (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    ),
    "frost": ((1, 0.4, 1), (0.8, 0.6, 1), (0.7, 0.7, 1), (0.65, 0.7, 1), (0.6, 0.75, 1)),
    "zoom-blur": ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
    "defocus-blur": ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    "glass-blur": ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    "gaussian-blur": (1, 2, 3, 4, 6),
    "motion-blur": ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    "speckle-noise": (0.15, 0.2, 0.35, 0.45, 0.6),
    "shot-noise": (60, 25, 12, 5, 3),
    "impulse-noise": (0.03, 0.06, 0.09, 0.17, 0.27),
    "gaussian-noise": (0.08, 0.12, 0.18, 0.26, 0.38),
    "jpeg-compression": (25, 18, 15, 10, 7),
    "pixelate": (0.6, 0.5, 0.4, 0.3, 0.25),
    "spatter": (
        (0.65, 0.3, 4, 0.69, 0.6, False),
        (0.65, 0.3, 3, 0.68, 0.6, False),
        (0.65, 0.3, 2, 0.68, 0.5, False),
        (0.65, 0.3, 1, 0.65, 1.5, True),
        (0.67, 0.4, 1, 0.65, 1.5, True),
    ),
    "elastic-transform": (  # 244 as published, for images of 224
        (244 * 2, 244 * 0.7, 244 * 0.1),
        (244 * 2, 244 * 0.08, 244 * 0.2),
        (244 * 0.05, 244 * 0.01, 244 * 0.02),
        (244 * 0.07, 244 * 0.01, 244 * 0.02),
        (244 * 0.12, 244 * 0.01, 244 * 0.02),
    ),
    "brightness": (0.1, 0.2, 0.3, 0.4, 0.5),
    "saturate": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
    "contrast": (0.4, 0.3, 0.2, 0.1, 0.05),
}
