"""A head that knows the features as they are, before fine-tuning changes them.

Kumar et al., Fine-Tuning Can Distort Pretrained Features and Underperform Out-of-Distribution, ICLR 2022: from a random
head the first steps of training change what the features knew of other domains.
"""

from __future__ import annotations

import warnings
from contextlib import ExitStack

import numpy as np
import torch
from torch import Tensor, nn

from onedomain.data.domain import Domain
from onedomain.data.memory import images_at_once
from onedomain.data.progress import progress
from onedomain.errors import UserError
from onedomain.networks import NamedNetwork
from onedomain.networks.named import in_mode

MOST_IMAGES = 10_000  # that the head is fitted to
STRENGTHS = (1.0, 0.1, 0.01, 0.001)  # inverse regularisation, of which cross-validation on the source takes one
FOLDS, COMPARED_ON = 3, 2_000  # and so many images are enough to compare them


def start_head(network: NamedNetwork, source: Domain, device: torch.device, shown: bool) -> float:
    """Fit the last layer to the source by logistic regression on frozen features; the accuracy in cross-validation."""
    module = network.module.to(device)
    some = np.linspace(0, len(source) - 1, min(len(source), MOST_IMAGES)).astype(np.int64)
    with torch.no_grad(), in_mode(module, training=False):
        head = last_layer(network, source.batch(some[:2], device).images)
        height, width, _ = source.image_shape
        size, parts = images_at_once(height, width, 100), []
        with progress("features", len(some), shown=shown, unit="images") as update:
            for start in range(0, len(some), size):
                z = network.embed(source.batch(some[start : start + size], device).images)[1]
                parts.append(z.flatten(1).cpu().numpy())
                update(min(start + size, len(some)), {})
        labels = np.asarray(source.labels)[some]
        weight, bias, accuracy = _fitted(np.concatenate(parts).astype(np.float64), labels, len(source.classes))
        head.weight.copy_(torch.from_numpy(weight))
        if head.bias is not None:
            head.bias.copy_(torch.from_numpy(bias))
    return accuracy


def last_layer(network: NamedNetwork, images: Tensor) -> nn.Linear:
    """The linear layer that makes logits of z, and of nothing else; the network is in eval mode."""
    given: list[tuple[nn.Linear, Tensor, Tensor]] = []
    with ExitStack() as hooks:
        for layer in network.module.modules():
            if isinstance(layer, nn.Linear):
                keep = layer.register_forward_hook(lambda layer, inputs, out: given.append((layer, inputs[0], out)))
                hooks.enter_context(keep)
        logits, z = network.embed(images)
    for layer, x, out in given:
        if torch.equal(out, logits) and x.shape == z.flatten(1).shape and torch.equal(x, z.flatten(1)):
            return layer
    raise UserError("head_start", f"the logits are no linear layer of {network.embedding!r}", "false for this network")


def _fitted(z: np.ndarray, labels: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Weights and biases of every class, and the accuracy in cross-validation.

    The strongest regularisation that does as well as the best, up to one standard error (Breiman et al., 1984): on the
    source under generated corruptions, half a point above the best itself.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    mean, scale = z.mean(0), max(float(z.std()), 1e-12)
    x = (z - mean) / scale
    few = np.linspace(0, len(x) - 1, min(len(x), COMPARED_ON)).astype(np.int64)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # close to the optimum is where fine-tuning goes on
        warnings.simplefilter("ignore", UserWarning)  # a class with fewer images than folds
        best, accuracy = STRENGTHS[-1], float("nan")
        if len(np.unique(labels[few])) == classes:
            losses, right = {}, {}
            for strength in STRENGTHS:
                model = LogisticRegression(C=strength, max_iter=200)
                said = cross_val_predict(model, x[few], labels[few], cv=folds, method="predict_proba")
                losses[strength] = -np.log(np.maximum(said[np.arange(len(few)), labels[few]], 1e-12))
                right[strength] = float((said.argmax(1) == labels[few]).mean())
            least = min(losses.values(), key=np.mean)
            enough = least.mean() + least.std() / np.sqrt(len(few))
            best = min(strength for strength in STRENGTHS if losses[strength].mean() <= enough)
            accuracy = right[best]
        model = LogisticRegression(C=best, max_iter=500).fit(x, labels)
    weight, bias = model.coef_, model.intercept_
    if classes == 2:  # one row says both
        weight, bias = np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
    weight = weight / scale
    return weight, bias - weight @ mean, accuracy
