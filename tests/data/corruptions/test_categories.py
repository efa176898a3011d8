"""What each corruption does to images whose answer is known, at the published strength of CIFAR-10-C."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from onedomain.data.corruptions import SEVERITIES, corrupt
from onedomain.data.corruptions.blur import _disk
from onedomain.data.corruptions.shared import motion_blurred, zoomed
from onedomain.data.corruptions.weather import plasma

GREY = np.full((40, 32, 32, 3), 128, np.uint8)
DOT = np.zeros((1, 33, 33, 3), np.uint8)
DOT[0, 16, 16] = 255


def half(brightness: float = 200) -> np.ndarray:
    """A colour with hue, saturation and value that are easy to follow: (v, v/2, v/2)."""
    return np.broadcast_to(np.array([brightness, brightness / 2, brightness / 2], np.uint8), (1, 8, 8, 3)).copy()


@pytest.mark.parametrize("severity", SEVERITIES)
def test_noise_has_the_published_strength(severity: int) -> None:
    place = severity - 1
    deviation = corrupt(GREY, "gaussian-noise", severity).std() / 255
    assert deviation == pytest.approx((0.04, 0.06, 0.08, 0.09, 0.10)[place], rel=0.02)
    deviation = corrupt(GREY, "speckle-noise", severity).std() / 128
    assert deviation == pytest.approx((0.06, 0.1, 0.12, 0.16, 0.2)[place], rel=0.02)
    photons = (500, 250, 100, 75, 50)[place]
    shot = corrupt(GREY, "shot-noise", severity) / 255  # of n photons, the root of n is the deviation
    assert shot.std() == pytest.approx(np.sqrt(128 / 255 / photons), rel=0.02)
    hit = corrupt(GREY, "impulse-noise", severity)
    assert set(np.unique(hit)) == {0, 128, 255}
    assert (hit != 128).mean() == pytest.approx((0.01, 0.02, 0.03, 0.05, 0.07)[place], rel=0.06)
    assert (hit == 255).mean() == pytest.approx((hit == 0).mean(), rel=0.15)


def test_noise_is_drawn_for_each_channel() -> None:
    for kind in ("gaussian-noise", "speckle-noise", "shot-noise"):
        noise = corrupt(GREY, kind, 5).reshape(-1, 3).astype(float)
        assert abs(np.corrcoef(noise[:, 0], noise[:, 1])[0, 1]) < 0.02


@pytest.mark.parametrize("severity", SEVERITIES)
def test_gaussian_blur_has_the_published_width(severity: int) -> None:
    sigma = (0.4, 0.6, 0.7, 0.8, 1)[severity - 1]
    spread = corrupt(DOT, "gaussian-blur", severity)[0, 16, :, 0].astype(float)
    expected = np.exp(-((np.arange(33) - 16) ** 2) / (2 * sigma**2))
    two_sided = 255 * expected[16] ** 2 / expected.sum() ** 2 * expected
    np.testing.assert_allclose(spread, two_sided, atol=1)


def test_defocus_blur_is_a_disk() -> None:
    for radius, rim in ((0.3, 0.4), (1.5, 0.1), (3, 0.1)):
        assert _disk(radius, rim).sum() == pytest.approx(1, abs=1e-5)
    wide = corrupt(DOT, "defocus-blur", 5)[0, 15:18, 15:18, 0]  # a disk of radius 1.5 is a square of 9 pixels
    np.testing.assert_allclose(wide, np.full((3, 3), 255 / 9), atol=1)


@pytest.mark.parametrize(("angle", "step"), [(0, (0, 1)), (90, (1, 0)), (-90, (-1, 0)), (45, (1, 1))])
def test_motion_blur_follows_a_line(angle: float, step: tuple[int, int]) -> None:
    """Pixel p becomes the mean of p, p + step, …, so a dot is drawn out against the step."""
    blurred = motion_blurred(DOT, 3, 1.0, np.array([angle]))[0, ..., 0]
    length = np.hypot(*step)
    weights = np.exp(-(np.arange(7) ** 2) / 2.0)
    weights /= weights.sum()
    expected = np.zeros((33, 33))
    for distance, weight in enumerate(weights):
        along = int(np.ceil(distance / length - 0.5))
        expected[16 - step[0] * along, 16 - step[1] * along] += 255 * weight
    np.testing.assert_array_equal(blurred, np.floor(expected + 0.5))


def test_motion_blur_repeats_the_rim() -> None:
    striped = np.zeros((1, 4, 6, 3), np.uint8)
    striped[:, :, -1] = 255
    blurred = motion_blurred(striped, 2, 1e6, np.array([0.0]))[0, 0, :, 0]  # five equal weights
    np.testing.assert_array_equal(blurred, [0, 51, 102, 153, 204, 255])


def test_glass_blur_takes_every_pixel_from_above_or_left() -> None:
    coordinates = np.zeros((1, 32, 32, 3), np.uint8)
    coordinates[0, ..., 0], coordinates[0, ..., 1] = 8 * np.indices((32, 32))
    once = corrupt(coordinates, "glass-blur", 1)[0].astype(int) // 8  # sigma 0.05 smooths nothing
    down, right = np.indices((32, 32)) - once[..., :2].transpose(2, 0, 1)
    inside = (slice(2, None), slice(2, None))
    assert set(np.unique(down[inside])) == set(np.unique(right[inside])) == {0, 1}
    assert abs(down[inside].mean() - 0.5) < 0.05
    assert not down[:2].any()
    assert not right[:, :2].any()


def test_zoom_blur_draws_towards_the_middle() -> None:
    np.testing.assert_array_equal(corrupt(GREY[:1], "zoom-blur", 5), GREY[:1])
    ramp = np.broadcast_to(np.arange(0, 248, 8, dtype=np.uint8)[None, None, :, None], (1, 31, 31, 3))
    blurred = corrupt(ramp, "zoom-blur", 5)[0, 15, :, 0].astype(int)
    moved = blurred - ramp[0, 15, :, 0]
    assert abs(moved[15]) < 8  # less than a pixel
    assert moved[0] > 8  # from further inside, where it is brighter
    assert moved[-1] < -8


def test_zoom_enlarges_the_middle() -> None:
    picture = np.zeros((2, 8, 8, 1))
    picture[:, 2:6, 2:6] = 1
    np.testing.assert_array_equal(zoomed(picture, 2.0), np.ones((2, 8, 8, 1)))
    np.testing.assert_array_equal(zoomed(picture, 1.0), picture)


def test_fog_is_a_plasma_from_0_to_1() -> None:
    maps = plasma(32, 2.0, [np.random.default_rng(each) for each in range(3)])
    np.testing.assert_array_equal(maps.min((1, 2)), 0)
    np.testing.assert_array_equal(maps.max((1, 2)), 1)
    rough = plasma(32, 1.2, [np.random.default_rng(0)])
    smooth = plasma(32, 4.0, [np.random.default_rng(0)])
    assert np.abs(np.diff(smooth[0])).mean() < np.abs(np.diff(rough[0])).mean() / 2
    # x + weight·fog, scaled so that white stays white: (1 + 0.2·m) / 1.2 for a white image
    white = corrupt(np.full((1, 32, 32, 3), 255, np.uint8), "fog", 1)
    assert (white.max(), white.min()) == (255, int(255 / 1.2))


def test_snow_whitens_and_adds_flakes_twice() -> None:
    black = corrupt(np.zeros((4, 32, 32, 3), np.uint8), "snow", 1)
    assert black.min() == int(0.05 * 0.5 * 255)  # 5% of a grey image of at least a half
    assert black.max() > 40
    assert (black == black.min()).mean() > 0.3
    flakes = black.astype(int) - black.min()
    np.testing.assert_array_equal(flakes, flakes[:, ::-1, ::-1])  # laid over a second time, turned around


def test_frost_is_the_published_mixture(tmp_path: Path) -> None:
    for name in ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg"):
        cv2.imwrite(str(tmp_path / name), np.full((300, 400, 3), (200, 150, 100), np.uint8))  # blue, green, red
    mixed = corrupt(GREY[:3], "frost", 5, overlays=tmp_path)
    expected = 0.75 * 128 + 0.45 * np.array([100, 150, 200])
    assert np.abs(mixed - expected).max() <= 1  # what a JPEG file may change


def test_contrast_brings_values_to_the_mean() -> None:
    two = np.zeros((1, 2, 2, 3), np.uint8)
    two[0, 0] = 200  # mean 100 in each channel
    np.testing.assert_allclose(corrupt(two, "contrast", 5)[0, :, 0, 0], [115, 85], atol=1)  # 100 ± 0.15·100
    np.testing.assert_allclose(corrupt(two, "contrast", 1)[0, :, 0, 0], [175, 25], atol=1)  # cut off, not rounded


def test_brightness_and_saturation_are_those_of_hsv() -> None:
    bright = corrupt(half(100), "brightness", 4)[0, 0, 0]  # value 100 + 0.2·255, the same hue and saturation
    np.testing.assert_allclose(bright, [151, 75.5, 75.5], atol=1)
    assert corrupt(half(240), "brightness", 5)[0, 0, 0, 0] == 255
    grey = corrupt(half(), "saturate", 2)[0, 0, 0]  # saturation ½ · 0.1
    np.testing.assert_allclose(grey, [200, 190, 190], atol=1)
    gaudy = corrupt(half(), "saturate", 4)[0, 0, 0]  # ½ · 2 + 0.1, at most 1
    np.testing.assert_array_equal(gaudy, [200, 0, 0])


def test_jpeg_is_that_of_the_published_quality(photographs: np.ndarray) -> None:
    for severity, quality in zip(SEVERITIES, (80, 65, 58, 50, 40), strict=True):
        file = BytesIO()
        Image.fromarray(photographs[0]).save(file, "JPEG", quality=quality)
        np.testing.assert_array_equal(corrupt(photographs[:1], "jpeg-compression", severity)[0], Image.open(file))


def test_pixelate_leaves_so_many_pixels() -> None:
    ramp = np.broadcast_to(np.arange(0, 256, 8, dtype=np.uint8)[None, None, :, None], (1, 32, 32, 3)).copy()
    left = [len(np.unique(corrupt(ramp, "pixelate", severity)[0, 0, :, 0])) for severity in SEVERITIES]
    assert left == [30, 28, 27, 24, 20]


def test_elastic_transform_moves_pixels_and_keeps_colours() -> None:
    np.testing.assert_array_equal(corrupt(GREY[:2], "elastic-transform", 5), GREY[:2])
    ramp = np.broadcast_to(np.arange(0, 256, 8, dtype=np.uint8)[None, None, :, None], (20, 32, 32, 3)).copy()
    inside = slice(8, -8)
    moved = [
        np.abs(corrupt(ramp, "elastic-transform", severity).astype(float) - ramp)[:, inside, inside].mean() / 8
        for severity in SEVERITIES
    ]
    assert all(0.3 < pixels < 3 for pixels in moved)


def test_spatter_is_water_and_then_mud() -> None:
    water = corrupt(GREY, "spatter", 3).astype(int)
    assert water.min() == 128
    wet = water[(water != 128).any(3)]
    assert 0.01 < len(wet) / water[..., 0].size < 0.6
    assert (wet[:, 1] >= wet[:, 0]).all()  # pale turquoise
    mud = corrupt(GREY, "spatter", 5).astype(int)
    dirty = mud[(mud != 128).any(3)]
    assert 0.01 < len(dirty) / mud[..., 0].size < 0.6
    assert (dirty[:, 0] > dirty[:, 2]).all()
    assert dirty.max() < 128
