"""Images and embeddings in the small form in which a run folder keeps them."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from onedomain.data.arrays import ByteArray, FloatArray

LONGEST_SIDE = 96  # of an image that is kept; larger ones are averaged down
MOST_FEATURES = 4096  # of an embedding; of larger ones, which are maps, the mean over their places is kept


def as_vectors(embedding: torch.Tensor) -> FloatArray:
    """z of each image as one vector of 16-bit floats, (N, D)."""
    if embedding[0].numel() > MOST_FEATURES and embedding.dim() > 2:
        embedding = mean_of_places(embedding)
    largest = torch.finfo(torch.float16).max
    return embedding.flatten(1).float().clamp(-largest, largest).half().cpu().numpy()


def mean_of_places(features: torch.Tensor) -> torch.Tensor:
    """Means over maps (N, C, H, W), or over tokens (N, T, C): (N, C); vectors as they are.

    >>> mean_of_places(torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[2., 3.]])
    """
    if features.dim() == 3:
        return features.mean(1)
    return features.flatten(2).mean(2) if features.dim() > 2 else features


def as_bytes(images: torch.Tensor, value_range: tuple[float, float], longest: int = LONGEST_SIDE) -> ByteArray:
    """(N, channels, height, width) as bytes of (N, height, width, channels), clipped to the range.

    Images with a side above `longest` are averaged down to it.
    """
    low, high = value_range
    unit = ((images.float() - low) / max(high - low, 1e-12)).clamp(0, 1)
    height, width = images.shape[2:]
    if max(height, width) > longest:
        scale = longest / max(height, width)
        unit = F.interpolate(unit, (max(1, round(height * scale)), max(1, round(width * scale))), mode="area")
    return (255 * unit).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous().cpu().numpy()
