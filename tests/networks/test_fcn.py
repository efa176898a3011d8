from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from onedomain.errors import UserError
from onedomain.networks import build_network
from onedomain.networks.fcn import BilinearUpsampling, FCN32s, FCNSmall
from onedomain.networks.resnet import ResNet


def test_resnet_50_has_the_usual_names_and_numbers():
    network = ResNet(3)
    shapes = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    assert len(shapes) == 320 - 2  # all of the public file but fc.weight and fc.bias
    assert sum(parameter.numel() for parameter in network.parameters()) == 25_557_032 - 2_049_000
    assert shapes["conv1.weight"] == (64, 3, 7, 7)
    assert shapes["bn1.running_var"] == (64,)
    assert shapes["layer1.0.downsample.0.weight"] == (256, 64, 1, 1)
    assert shapes["layer2.0.conv2.weight"] == (128, 128, 3, 3)
    assert shapes["layer3.5.bn3.num_batches_tracked"] == ()
    assert shapes["layer4.2.conv3.weight"] == (2048, 512, 1, 1)
    assert network.layer2[0].conv2.stride == (2, 2)  # where the public weights have it
    assert network.layer2[0].conv1.stride == (1, 1)


@pytest.mark.parametrize(("name", "factor"), [("fcn-32s", 32), ("fcn-small", 8)])
def test_every_pixel_gets_a_score_whatever_the_size(name, factor):
    for height, width in ((64, 96), (45, 70)):
        named = build_network(name, 5, (height, width, 3))
        named.module.eval()
        logits, z = named.embed(torch.rand(1, 3, height, width))
        assert logits.shape == (1, 5, height, width)
        assert z.shape[2:] == (-(-height // factor), -(-width // factor))
        for layer in named.perturb:
            assert named.module.get_submodule(layer) is not None


def test_parameters_as_stated():
    large, small = FCN32s(14, (192, 320, 3)), FCNSmall(11, (180, 240, 3))
    assert {name.partition(".")[0] for name in large.state_dict()} == {"backbone", "score"}
    assert sum(parameter.numel() for parameter in large.parameters()) == 23_536_718
    assert sum(parameter.numel() for parameter in small.parameters()) == 556_395


def test_upsampling_is_bilinear_interpolation_from_the_places_that_strides_look_at():
    maps = torch.randn(2, 3, 4, 5)
    up = BilinearUpsampling(8)(maps, (30, 40))
    assert torch.allclose(up[:, :, ::8, ::8], maps, atol=1e-6)
    beyond = F.pad(maps, (0, 1, 0, 1), mode="replicate")
    expected = F.interpolate(beyond, (33, 41), mode="bilinear", align_corners=True)[:, :, :30, :40]
    assert torch.allclose(up, expected, atol=1e-6)


def test_upsampling_is_not_learned_and_not_in_the_weights():
    network = FCNSmall(4, (16, 16, 3))
    assert not any("upscore" in name or "standardise" in name for name in network.state_dict())


def test_a_place_of_the_map_lies_at_its_pixel():
    """Where an image changes, the map of the small network changes most at the place that lies there."""
    torch.manual_seed(0)
    network = FCNSmall(3, (96, 96, 3)).eval()
    image = torch.rand(1, 3, 96, 96)
    changed = image.clone()
    changed[:, :, 40:48, 64:72] = 1 - changed[:, :, 40:48, 64:72]
    stem = (
        network.features.reduce(network.features.stem(image)),
        network.features.reduce(network.features.stem(changed)),
    )
    away = (stem[0] - stem[1]).abs().sum(1)[0]
    row, column = divmod(int(away.argmax()), 12)
    assert abs(8 * row - 44) <= 8
    assert abs(8 * column - 68) <= 8


def test_training_starts_from_no_opinion():
    network = FCNSmall(4, (16, 16, 3))
    assert not network(torch.rand(2, 3, 16, 16)).any()


def test_colours_are_standardised_inside():
    network = FCNSmall(4, (16, 16, 3))
    mean = network.standardise(torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
    assert torch.allclose(mean, torch.zeros(1, 3, 1, 1), atol=1e-6)
    assert FCNSmall(4, (16, 16, 1)).eval()(torch.rand(1, 1, 16, 16)).shape == (1, 4, 16, 16)


def test_too_small_images_are_refused():
    with pytest.raises(UserError, match="fcn-small cannot take 4×16 images; allowed: 8×8 or larger"):
        build_network("fcn-small", 3, (4, 16, 3))
