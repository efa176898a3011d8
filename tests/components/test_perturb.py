from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from onedomain.components.equations import hard_labels, mixup, perturbed, smoothed_labels
from onedomain.components.perturb import Noise, Perturbation, smooth_normal
from onedomain.components.perturbed_domains import Labels, make_domains
from onedomain.errors import UserError
from onedomain.networks import build_network
from onedomain.networks.hooks import added, can_expand, probe, watched
from onedomain.networks.named import IMAGE, NamedNetwork
from tests.conftest import TinyNet


class Residual(nn.Module):
    """A path leads around the perturbed layer."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3)
        self.branch = nn.Conv2d(4, 4, 3, padding=1)
        self.head = nn.Linear(4, 3)

    def forward(self, images):
        x = self.stem(images)
        return self.head((x + self.branch(x).relu()).mean((2, 3)))


class Chain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3)
        self.block = nn.Sequential(nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 1))
        self.middle = nn.Linear(54, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, images):
        return self.head(self.middle(self.block(self.first(images)).flatten(1)).tanh())


def named(module, *layers, embedding=None):
    return NamedNetwork(module, own="x", embedding=embedding, perturb=layers)


def images(count=4, channels=1, side=8, dtype=torch.float32):
    return torch.rand(count, channels, side, side, generator=torch.Generator().manual_seed(0), dtype=dtype)


def test_the_equations_by_hand():
    assert perturbed(torch.tensor([1.0]), torch.tensor([2.0])).item() == pytest.approx(1 + math.log(1 + math.exp(2)))
    h, h_plus = torch.tensor([[2.0, 4.0], [2.0, 4.0]]), torch.tensor([[4.0, 8.0], [4.0, 8.0]])
    assert mixup(h, h_plus, torch.tensor([0.75, 0.0])).tolist() == [[2.5, 5.0], [4.0, 8.0]]
    smooth = smoothed_labels(torch.tensor([2, 0]), 3, torch.tensor([1.0, 0.25]), rho=0.9)
    expected = [[0.05, 0.05, 0.9], [0.75 + 0.25 * 0.9, 0.25 * 0.05, 0.25 * 0.05]]
    assert torch.allclose(smooth, torch.tensor(expected))


def test_what_a_sample_keeps_of_itself_its_noise_and_its_label_lose(monkeypatch):
    """Eq. 11 at both ends: at λ = 1 no noise and its own label, at λ = 0 all of the noise and the smoothed label."""
    monkeypatch.setattr(Noise, "draw_mix", lambda self, count: torch.tensor([[1.0, 0.0]]).expand(count, 2))
    ones = torch.ones(2)
    noise = Noise([torch.zeros(2, 5)], [torch.ones(2, 5)], ones, ones, tau=ones)
    made = make_domains(noise, Labels(torch.tensor([2, 2]), 3), 2, (0.0, 1.0), rho=0.9)
    assert made.share.tolist() == [[[0.0, 1.0]] * 2]
    expected = torch.tensor([[0.0, 0.0, 1.0], [0.05, 0.05, 0.9]])
    assert torch.allclose(made.labels, expected.expand(1, 2, 2, 3))


def test_labels_of_pixels_keep_void_without_mass():
    labels = torch.tensor([[[0, 1], [9, 2]]])
    smooth = smoothed_labels(labels, 3, torch.tensor([1.0]), rho=0.9, void=9)
    assert smooth.shape == (1, 3, 2, 2)
    assert smooth[0, :, 1, 0].tolist() == [0, 0, 0]
    assert torch.allclose(smooth[0, :, 0, 1], torch.tensor([0.05, 0.9, 0.05]))
    assert hard_labels(labels, 3, void=9).sum().item() == 3


def test_the_digits_lenet_has_the_papers_number_of_parameters():
    network = build_network("lenet", 10, (32, 32, 3))
    phi = Perturbation(network, images(2, 3, 32))
    beside = sum(parameter.numel() for parameter in phi.parameters())
    assert network.parameter_count + beside == 5_268_109
    with_images = Perturbation(replace(network, perturb=(IMAGE, *network.perturb)), images(2, 3, 32))
    assert sum(parameter.numel() for parameter in with_images.parameters()) == beside + 168


def test_noise_is_within_its_bounds_and_small_at_first():
    network = named(Chain(), "first", "middle")
    phi = Perturbation(network, images())
    with torch.no_grad(), watched(network) as seen:
        network(images())
    noise = phi(seen.inputs)
    assert all(nn.functional.softplus(mu).mean().item() < 0.3 for mu in noise.mu)
    for parameter in phi.parameters():
        nn.init.normal_(parameter, std=30.0)
    noise = phi(seen.inputs)
    for mu, sigma in zip(noise.mu, noise.sigma, strict=True):
        assert mu.abs().max() <= 2
        assert sigma.min() >= 0
        assert sigma.max() <= 1
    for beta in (noise.a, noise.b):
        assert beta.min() >= 0.5
        assert beta.max() <= 2
    assert noise.tau.min() >= 0
    assert noise.tau.max() <= 1


@pytest.mark.parametrize(
    ("module", "layers", "multiplies"),
    [
        (Chain, ("first", "middle"), True),
        (Chain, ("block",), True),
        (Residual, ("stem",), True),
        (Residual, ("branch",), False),
        (TinyNet, ("conv",), True),
        (Chain, (IMAGE, "first"), True),
        (Residual, (IMAGE, "branch"), True),
    ],
)
def test_one_pass_for_all_draws_and_kinds_against_one_pass_for_each(module, layers, multiplies):
    torch.manual_seed(0)
    network = named(module().eval(), *layers)
    assert can_expand(network, images()) is multiplies
    phi = Perturbation(network, images())
    with torch.no_grad(), watched(network) as seen:
        network(images())
    noise = phi(seen.inputs)
    e = [mu + sigma * torch.randn(2, *mu.shape) for mu, sigma in zip(noise.mu, noise.sigma, strict=True)]
    mix = torch.rand(3, 2, 4)
    with torch.no_grad(), added(network, [nn.functional.softplus(each) for each in e], 1 - mix):
        together = network(images() if multiplies else images().repeat(6, 1, 1, 1)).view(3, 2, 4, -1)
    for kind in range(3):
        for k in range(2):
            given = images()
            if layers[0] == IMAGE:
                given = mixup(given, perturbed(given, e[0][k]), mix[kind, k])
            hooks = [
                network.module.get_submodule(name).register_forward_hook(
                    lambda _layer, _inputs, h, place=place, kind=kind, k=k: mixup(
                        h, perturbed(h, e[place][k]), mix[kind, k]
                    )
                )
                for place, name in enumerate(layers)
                if name != IMAGE
            ]
            with torch.no_grad():
                alone = network(given)
            for hook in hooks:
                hook.remove()
            assert torch.allclose(together[kind, k], alone, atol=1e-5)


def test_a_samples_mixing_touches_no_other_sample():
    network = named(Chain().eval(), "first", "middle")
    phi = Perturbation(network, images())
    with torch.no_grad(), watched(network) as seen:
        network(images())
    offsets = phi(seen.inputs).draw(1)
    share = torch.full((1, 1, 4), 0.5)
    with torch.no_grad(), added(network, offsets, share):
        before = network(images())
    share[0, 0, 2] = 0.9
    with torch.no_grad(), added(network, offsets, share):
        after = network(images())
    changed = (before != after).any(1)
    assert changed.tolist() == [False, False, True, False]


def test_the_network_is_left_as_it_was():
    network = named(Chain(), "first")
    before = network(images())
    can_expand(network, images())
    Perturbation(network, images())
    assert network.module.training
    assert torch.equal(network(images()), before)


def test_gradients_of_lambda_are_those_of_the_beta_distribution():
    a = torch.full((200_000,), 0.8, dtype=torch.float64, requires_grad=True)
    b = torch.full((200_000,), 1.6, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(0)
    noise = Noise([], [], a, b, torch.zeros_like(a))
    mix = noise.draw_mix(1)
    assert mix.shape == (1, 200_000)
    by_a, by_b = torch.autograd.grad(mix.square().sum(), (a, b))
    # E[λ²] = a(a+1) / ((a+b)(a+b+1)), whose derivatives are known.
    s, top = 0.8 + 1.6, 0.8 * 1.8
    bottom, slope = s * (s + 1), 2 * s + 1
    assert by_a.mean().item() == pytest.approx((2 * 0.8 + 1) / bottom - top * slope / bottom**2, abs=2e-3)
    assert by_b.mean().item() == pytest.approx(-top * slope / bottom**2, abs=2e-3)


def test_gradients_of_the_noise_against_finite_differences():
    torch.manual_seed(0)
    network = named(Chain().double(), "first", "middle")
    phi = Perturbation(network, images(dtype=torch.float64)).double()
    with torch.no_grad(), watched(network) as seen:
        network(images(dtype=torch.float64))

    def value():
        torch.manual_seed(7)
        return sum(((place + 1) * offset.square()).sum() for place, offset in enumerate(phi(seen.inputs).draw(2)))

    for parameter in (phi.mu[0].weight, phi.log_variance[1].weight):
        gradient = torch.autograd.grad(value(), parameter)[0].flatten()
        for place in (0, 5, 17):
            sides = []
            for shift in (1e-6, -1e-6):
                with torch.no_grad():
                    parameter.view(-1)[place] += shift
                sides.append(value().item())
                with torch.no_grad():
                    parameter.view(-1)[place] -= shift
            assert gradient[place].item() == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-5, abs=1e-6)


def test_smooth_noise_is_standard_normal_at_every_place_and_alike_at_near_ones():
    torch.manual_seed(0)
    drawn = smooth_normal(2, torch.zeros(4_000, 1, 12, 20))
    assert drawn.shape == (2, 4_000, 1, 12, 20)
    fields = drawn.flatten(0, 2)
    assert fields.mean(0).abs().max() < 0.06
    assert (fields.var(0) - 1).abs().max() < 0.1
    beside = (fields[:, 5, 9] * fields[:, 5, 10]).mean().item()
    apart = (fields[:, 0, 0] * fields[:, 11, 19]).mean().item()
    assert beside > 0.6
    assert abs(apart) < 0.06


def test_smooth_noise_is_linear_between_its_few_values(monkeypatch):
    monkeypatch.setattr("onedomain.components.perturb.SMOOTH_SIDES", (2,))
    torch.manual_seed(0)
    field = smooth_normal(1, torch.zeros(1, 1, 8, 8))[0, 0, 0].double()
    weights = torch.tensor([1.0, 1.0, 0.875, 0.625, 0.375, 0.125, 0.0, 0.0], dtype=torch.float64)
    # By hand: the first and last quarter are the two values themselves, in between their shares, brought to length 1.
    share = torch.stack([weights, 1 - weights], 1)
    share = share / share.norm(dim=1, keepdim=True)
    corners = field[[0, 0, 7, 7], [0, 7, 0, 7]].view(2, 2)
    assert torch.allclose(field, share @ corners @ share.T, atol=1e-5)


def test_smooth_noise_of_the_same_generator_is_the_same_and_channels_differ():
    one, same = (smooth_normal(3, torch.zeros(1, 3, 8, 8), torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(one, same)
    assert not torch.allclose(one[:, :, 0], one[:, :, 1])


@pytest.mark.parametrize("shape", [(3, 2, 4, 4), (3, 5)])
@pytest.mark.parametrize("multiplied", [True, False])
@pytest.mark.parametrize("place", ["0", IMAGE])
def test_backward_written_by_hand_against_finite_differences(shape, multiplied, place):
    """Draws of noise and what layers add of it: μ, σ, h and share, maps and vectors, two kinds of two draws."""
    kinds, draws = 2, 2
    torch.manual_seed(0)
    network = named(nn.Sequential(nn.Identity()), place)
    samples = shape[0]
    h = torch.randn(samples if multiplied else kinds * draws * samples, *shape[1:], dtype=torch.float64)
    mu, sigma = torch.randn(shape, dtype=torch.float64), torch.rand(shape, dtype=torch.float64)
    share = torch.rand(kinds, draws, samples, dtype=torch.float64)
    ones = torch.ones(samples)

    def perturb(h, mu, sigma, share):
        torch.manual_seed(1)
        smooth = place == IMAGE and len(shape) == 4
        with added(network, Noise([mu], [sigma], ones, ones, ones, smooth).draw(draws), share):
            return network.module(h).square()

    assert torch.autograd.gradcheck(perturb, [each.requires_grad_() for each in (h, mu, sigma, share)])


def test_layers_that_cannot_be_perturbed_are_refused_with_one_line():
    with pytest.raises(UserError, match="perturb: no layer is named; allowed: one or more of first, block"):
        probe(named(Chain()), images())
    with pytest.raises(UserError, match="allowed: in the order of the pass: first, middle"):
        probe(named(Chain(), "middle", "first"), images())

    class Twice(Chain):
        def forward(self, images):
            return super().forward(images) + super().forward(images)

    with pytest.raises(UserError, match="layer 'first' is called 2 times"):
        probe(named(Twice(), "first"), images())


def test_a_perturbed_layer_may_be_followed_by_one_that_works_in_place():
    layers = (nn.Conv2d(1, 4, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(144, 3))
    network = named(nn.Sequential(*layers), "0")
    offsets = [torch.ones(2, 4, 4, 6, 6, requires_grad=True)]
    with added(network, offsets, torch.ones(1, 2, 4)):
        network(images()).sum().backward()
    assert offsets[0].grad.abs().sum() > 0


@pytest.mark.parametrize("layers", [("features.conv1", "features.conv2"), ("features.conv2", "features.fc1")])
def test_the_statistics_are_those_of_the_last_layers_noise_at_every_second_place(layers):
    torch.manual_seed(0)
    network = replace(build_network("lenet", 10, (32, 32, 3)), perturb=layers)
    images = torch.rand(3, 3, 32, 32)
    phi = Perturbation(network, images)
    for twin in (*phi.mu, *phi.log_variance):
        torch.nn.init.normal_(twin.weight)
    with torch.no_grad(), watched(network) as seen:
        network(images)
        noise = phi(seen.inputs)
        found = phi.statistics(seen.inputs)
    last = [noise.mu[-1], noise.sigma[-1]]
    expected = torch.cat([each[:, :, ::2, ::2].mean((2, 3)) if each.dim() == 4 else each for each in last], 1)
    assert torch.allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"embedding": IMAGE}, "embedding"),
        ({"perturb": ("first", IMAGE)}, "perturb"),
        ({"perturb": (IMAGE, IMAGE)}, "perturb"),
    ],
)
def test_the_name_of_the_image_stands_first_among_the_perturbed_or_nowhere(given, field):
    with pytest.raises(UserError, match=field):
        NamedNetwork(Chain(), own="x", **given)
