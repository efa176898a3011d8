"""Image files and what Pillow does with images; without torch, so that many processes can use it."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from onedomain.data.domain import LONGEST_SIDE
from onedomain.data.files import os_errors_are_user_errors
from onedomain.data.formats import open_image
from onedomain.errors import UserError

IMAGE_ENDINGS = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm"})


def find_images(folder: Path, needed: bool = True) -> list[Path]:
    """The image files in a folder and its sub-folders; where they are `needed`, at least one."""

    def refuse(error: OSError) -> NoReturn:  # else what is in a folder that cannot be read would be left out silently
        with os_errors_are_user_errors(Path(error.filename), "read"):
            raise error

    inside = (Path(place, name) for place, _, names in os.walk(folder, onerror=refuse) for name in names)
    files = sorted(file for file in inside if file.suffix.lower() in IMAGE_ENDINGS)
    if needed and not files:
        raise no_image(folder)
    return files


def no_image(folder: Path, what: str = "image") -> UserError:
    return UserError(str(folder), f"holds no {what}", f"files ending in {', '.join(sorted(IMAGE_ENDINGS))}")


def decode_image(file: Path, size: tuple[int, int] | None, channels: int) -> np.ndarray:
    """One image file as (height, width, channels) bytes, upright, on white where it is transparent."""
    from PIL import ImageOps

    if channels not in (1, 3):
        raise UserError(str(file), f"cannot be read with {channels} channels", "1 (grey) or 3 (colour)")
    with open_image(file, "a whole image file") as opened:
        if opened.mode in ("I", "F"):
            raise UserError(str(file), f"has pixels of type {opened.mode}", "8 or 16 bits a channel")
        if size is not None:
            opened.draft(None, (2 * size[1], 2 * size[0]))  # a large JPEG need not be decoded in full
        return as_pixels(ImageOps.exif_transpose(opened), size, channels)


def as_pixels(picture: Any, size: tuple[int, int] | None, channels: int) -> np.ndarray:
    """An image of Pillow as (height, width, channels) bytes."""
    from PIL import Image

    if picture.mode.startswith("I;16"):  # Pillow would cut 16 bits off at 255
        picture = Image.fromarray((np.asarray(picture) // 257).astype(np.uint8))
    if picture.has_transparency_data:
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture.convert("RGBA"))
    image = picture.convert("RGB" if channels == 3 else "L")
    if size is not None and image.size != (size[1], size[0]):
        # As ImageNet's networks were trained: half a point above BILINEAR, on the source under generated corruptions.
        image = image.resize((size[1], size[0]), Image.Resampling.BICUBIC)
    pixels = np.asarray(image)
    return pixels[..., None] if channels == 1 else pixels


def checked_size(size: Any) -> tuple[int, int]:
    """Height and width that images can be brought to."""
    sides = tuple(size) if isinstance(size, (tuple, list)) else ()
    if len(sides) != 2 or not all(isinstance(side, int) and 1 <= side <= LONGEST_SIDE for side in sides):
        raise UserError("size", f"got {size!r:.60}", f"(height, width), each from 1 to {LONGEST_SIDE:,}")
    return sides


def image_size(file: Path) -> tuple[int, int]:
    """Width and height, from the first bytes of a file."""
    with open_image(file, "a whole image file") as opened:
        width, height = opened.size
    return width, height


def resized(images: Iterable[np.ndarray], side: int, resampling: str) -> np.ndarray:
    """Images of bytes as squares, by one of Pillow's ways of resampling."""
    from PIL import Image

    method = Image.Resampling[resampling]
    return np.stack([np.asarray(Image.fromarray(image).resize((side, side), method)) for image in images])


def to_rgb32(images: np.ndarray) -> np.ndarray:
    """Images of any size, grey or coloured, as 32×32×3: resized by Pillow, grey copied to three channels."""
    if images.shape[1:3] != (32, 32):
        images = resized(images, 32, "BILINEAR")  # the numbers depend on it: OpenCV's differs in 4% of the pixels
    return images if images.ndim == 4 else np.repeat(images[..., None], 3, axis=3)


def through_jpeg(image: np.ndarray, quality: int) -> np.ndarray:
    """An image as it comes back from a JPEG file."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file, formats=("JPEG",)))
