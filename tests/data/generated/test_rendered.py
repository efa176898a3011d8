from __future__ import annotations

import itertools

import numpy as np
import pytest

from onedomain.data.generated import rendered
from onedomain.data.generated.rendered import FONTS, HOUSE_FONTS, LUMA, SIZE, Pose, number_mask

ALONE = ("", "")
UPRIGHT = Pose(height=22, aspect=1.0, angle=0.0, shear=0.0, tilt=(0, 0), shift=(0, 0), spacing=17)
EVERY_FONT = sorted({*FONTS, *HOUSE_FONTS})


def test_at_least_six_fonts_that_draw_differently() -> None:
    assert len(set(FONTS)) == len(FONTS) >= 6
    masks = {font: number_mask("2", ALONE, font, UPRIGHT).astype(int) for font in EVERY_FONT}
    for one, other in itertools.combinations(EVERY_FONT, 2):
        assert np.abs(masks[one] - masks[other]).mean() > 1, f"{one} looks like {other}"


@pytest.mark.parametrize("font", EVERY_FONT)
def test_a_font_has_ten_different_digits_that_stand_upright(font: str) -> None:
    masks = [number_mask(str(digit), ALONE, font, UPRIGHT).astype(int) for digit in range(10)]
    for one, other in itertools.combinations(masks, 2):
        assert np.abs(one - other).mean() > 3  # the box of a missing glyph would be equal for all
    seven, three, half = masks[7], masks[3], SIZE // 2
    assert seven[:half].sum() > 1.1 * seven[half:].sum(), "upside down"
    assert three[:, half:].sum() > 1.2 * three[:, :half].sum(), "mirrored"


@pytest.mark.parametrize("font", EVERY_FONT)
def test_the_digit_is_whole_in_the_frame_however_it_is_posed(font: str) -> None:
    extremes = itertools.product((17, 60), (-0.4, 0.4), ((-20, -20), (20, 20)), ((0, 0), (0.012, -0.006)))
    for digit, (height, angle, shift, tilt) in zip(itertools.cycle("0123456789"), extremes, strict=False):
        pose = Pose(height, 1.1, angle, 0.2, tilt, shift, 17)
        mask = number_mask(digit, ALONE, font, pose).astype(int)
        centred = number_mask(digit, ALONE, font, pose._replace(shift=(0, 0))).astype(int)
        assert mask.sum() > 255 * 15
        assert mask.sum() == pytest.approx(centred.sum(), rel=0.03), "part of the digit left the frame"
        frame = np.concatenate([mask[0], mask[-1], mask[:, 0], mask[:, -1]])
        assert frame.max() < 8  # of 255: the bleed of the interpolation


def test_height_rotation_and_shift_are_as_asked() -> None:
    tall = number_mask("8", ALONE, "DejaVuSans.ttf", UPRIGHT)
    assert np.flatnonzero((tall > 127).any(axis=1)).size == pytest.approx(22, abs=1)
    moved = number_mask("8", ALONE, "DejaVuSans.ttf", UPRIGHT._replace(shift=(3, -2)))
    np.testing.assert_array_equal(moved, np.roll(tall, (-2, 3), axis=(0, 1)))
    quarter = number_mask("8", ALONE, "DejaVuSans.ttf", UPRIGHT._replace(angle=np.pi / 2))
    assert np.abs(np.rot90(tall, -1).astype(int) - quarter).mean() < 2


@pytest.mark.parametrize("font", EVERY_FONT)
def test_neighbours_are_cut_by_the_frame_and_leave_the_digit_alone(font: str) -> None:
    alone = number_mask("1", ALONE, font, UPRIGHT)
    crowded = number_mask("1", ("0", "0"), font, UPRIGHT)
    columns = np.flatnonzero(alone.any(axis=0))
    np.testing.assert_array_equal(crowded[:, columns], alone[:, columns])
    assert crowded[:, 0].max() > 127
    assert crowded[:, -1].max() > 127


def test_syn_rendered_is_balanced_deterministic_and_uses_every_font() -> None:
    one = rendered.syn_rendered(200, np.random.default_rng(3))
    two = rendered.syn_rendered(200, np.random.default_rng(3))
    other = rendered.syn_rendered(200, np.random.default_rng(4))
    for key in one:
        assert one[key].tobytes() == two[key].tobytes()
    assert one["images"].tobytes() != other["images"].tobytes()
    assert np.bincount(one["labels"]).tolist() == [20] * 10
    assert set(one["font"].tolist()) == set(range(len(FONTS)))


def test_ink_stands_out_from_paper_where_they_were_put() -> None:
    arrays = rendered.syn_rendered(300, np.random.default_rng(5))
    asked = np.abs((arrays["ink"].astype(float) - arrays["paper"]) @ LUMA)
    assert asked.min() >= rendered.MIN_CONTRAST
    # The picture must hold both colours: some pixels near the ink, most of the frame near the paper.
    brightness = arrays["images"] @ LUMA
    paper = (arrays["paper"] @ LUMA)[:, None, None]
    towards_ink = np.sign((arrays["ink"].astype(float) - arrays["paper"]) @ LUMA)[:, None, None]
    away = ((brightness - paper) * towards_ink).reshape(300, -1)
    strongest = np.sort(away, axis=1)[:, -40:].mean(axis=1)
    assert np.percentile(strongest, 1) > 45
    assert np.percentile(np.abs(np.median(away, axis=1)), 90) < 30


def test_the_two_rendered_styles_are_far_apart() -> None:
    photos = np.random.default_rng(0).integers(0, 256, (2, 200, 300, 3), dtype=np.uint8)
    bright = rendered.syn_rendered(200, np.random.default_rng(1))["images"].astype(float)
    street = rendered.svhn_style(200, photos, np.random.default_rng(1))["images"].astype(float)

    def colourfulness(images: np.ndarray) -> float:
        return float(np.median(np.ptp(images.mean(axis=(1, 2)), axis=1)))

    def contrast(images: np.ndarray) -> float:
        return float(np.median((images @ LUMA).std(axis=(1, 2))))

    assert colourfulness(street) < colourfulness(bright) / 3
    assert contrast(street) < contrast(bright)


def test_house_numbers_are_balanced_deterministic_and_show_their_figures() -> None:
    photos = np.full((2, 200, 300, 3), 128, dtype=np.uint8)
    one = rendered.svhn_style(200, photos, np.random.default_rng(3))
    two = rendered.svhn_style(200, photos, np.random.default_rng(3))
    assert one["images"].tobytes() == two["images"].tobytes()
    assert one["images"].shape == (200, SIZE, SIZE, 3)
    assert one["images"].dtype == np.uint8
    assert np.bincount(one["labels"]).tolist() == [20] * 10
    # On a wall without texture the figures are what varies: faint, but there.
    spread = np.ptp(np.percentile(one["images"] @ LUMA, [5, 95], axis=(1, 2)), axis=0)
    assert spread.min() > 20
