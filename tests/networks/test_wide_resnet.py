from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from onedomain.errors import UserError
from onedomain.networks import WideResNet, build_network
from onedomain.networks.hooks import can_expand, require_reached_embedding


def published_count(depth: int, width: int, classes: int) -> int:
    """Parameters as counted from the paper's Table 1, layer by layer; BatchNorm has two a channel."""
    blocks, channels = (depth - 4) // 6, [16, 16 * width, 32 * width, 64 * width]
    count = 3 * 16 * 9
    for inputs, outputs in pairwise(channels):
        for place in range(blocks):
            before = inputs if place == 0 else outputs
            count += 2 * before + 9 * before * outputs + 2 * outputs + 9 * outputs * outputs
            count += before * outputs if before != outputs else 0
    return count + 2 * channels[3] + channels[3] * classes + classes


def test_wrn_16_4_has_the_papers_number_of_parameters():
    assert build_network("wrn-16-4", 10, (32, 32, 3)).parameter_count == published_count(16, 4, 10) == 2_748_890
    assert build_network("wrn-10-1", 10, (32, 32, 3)).parameter_count == published_count(10, 1, 10) == 77_850
    # WRN-28-10 is published as 36.5 M, WRN-16-8 as 11.0 M
    assert round(published_count(28, 10, 10) / 1e6, 1) == 36.5
    assert round(published_count(16, 8, 10) / 1e6, 1) == 11.0


def test_it_has_sixteen_layers_and_the_papers_channels():
    network = build_network("wrn-16-4", 10, (32, 32, 3)).module
    # 6·2 + 4, as the depth is counted there: the three projections with them, the head aside
    assert sum(isinstance(layer, torch.nn.Conv2d) for layer in network.modules()) == 16
    sizes = {}
    for name in ("conv", "group1", "group2", "group3"):
        layer = network.features.get_submodule(name)
        layer.register_forward_hook(lambda _m, _i, out, name=name: sizes.update({name: tuple(out.shape[1:])}))
    network.eval()(torch.rand(1, 3, 32, 32))
    assert sizes == {"conv": (16, 32, 32), "group1": (64, 32, 32), "group2": (128, 16, 16), "group3": (256, 8, 8)}


def test_z_are_the_averaged_maps():
    network = build_network("wrn-10-1", 10, (32, 32, 3))
    network.module.eval()
    logits, z = network.embed(torch.rand(2, 3, 32, 32))
    assert z.shape == (2, 64)
    assert torch.equal(network.module.head(z), logits)


def test_a_block_adds_to_what_came_in():
    block = WideResNet(10, (32, 32, 3), depth=16, width=4).features.group1[1].eval()
    torch.nn.init.zeros_(block.conv2.weight)
    x = torch.rand(2, 64, 8, 8)
    assert torch.equal(block(x), x)


def test_its_layers_can_be_perturbed():
    network = build_network("wrn-10-1", 10, (16, 16, 3))
    images = torch.rand(3, 3, 16, 16)
    assert can_expand(network, images)
    require_reached_embedding(network, images)


@pytest.mark.parametrize("shape", [(8, 8, 1), (40, 64, 3), (33, 17, 4)])
def test_other_sizes_channels_and_classes(shape):
    network = build_network("wrn-10-1", 7, shape)
    assert network(torch.rand(2, shape[2], *shape[:2])).shape == (2, 7)


def test_what_does_not_fit_is_refused():
    with pytest.raises(UserError, match="wrn-16-4 cannot take 7×40 images; allowed: 8×8 or larger"):
        build_network("wrn-16-4", 10, (7, 40, 3))
    for depth in (4, 12, 17):
        with pytest.raises(UserError, match=f"depth: got {depth}; allowed: 10, 16, 22"):
            WideResNet(10, (32, 32, 3), depth=depth, width=1)
