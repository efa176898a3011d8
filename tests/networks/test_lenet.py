from __future__ import annotations

import pytest
import torch

from onedomain.errors import UserError
from onedomain.networks import build_network


def test_it_has_the_papers_number_of_parameters():
    assert build_network("lenet", 10, (32, 32, 3)).parameter_count == 4_547_466


def test_z_is_the_output_of_the_second_fully_connected_layer():
    network = build_network("lenet", 10, (32, 32, 3))
    images = torch.rand(2, 3, 32, 32)
    logits, z = network.embed(images)
    assert z.shape == (2, 1024)
    assert (z >= 0).all()
    assert torch.equal(network.module.head(z), logits)


@pytest.mark.parametrize("shape", [(16, 16, 1), (28, 28, 1), (40, 64, 3), (96, 20, 4)])
@pytest.mark.parametrize("classes", [2, 37])
def test_other_sizes_channels_and_classes(shape, classes):
    network = build_network("lenet", classes, shape)
    assert network(torch.rand(2, shape[2], *shape[:2])).shape == (2, classes)
    assert network.parameter_count < 5_000_000


def test_too_small_images_are_refused():
    with pytest.raises(UserError, match=r"lenet cannot take 15×40 images; allowed: 16×16 or larger"):
        build_network("lenet", 10, (15, 40, 3))
