"""What a model predicts, and how sure it is: from one pass or several Monte-Carlo draws; how far predictions differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import torch
from torch import Tensor

from onedomain.networks.distributed import in_shares, is_shared


class Predictive:
    """What a model predicts of N samples, from Monte-Carlo draws that are added up one by one: none is kept.

    `draws` are probabilities, (N, C, …) each; `plain` those of the undisturbed network, the prediction if they are
    given. `statistics` are those of (μ, σ), if φ gives them, (N, F); `embedding` is z of the plain pass, (N, …), if the
    network's layer is named.
    """

    def __init__(
        self,
        draws: Iterable[Tensor],
        statistics: Tensor | None = None,
        embedding: Tensor | None = None,
        plain: Tensor | None = None,
    ) -> None:
        self.statistics, self.embedding = statistics, embedding
        rest = iter(draws)
        total, expected, count = next(rest), None, 1
        for draw in rest:
            expected = (entropy(total) if expected is None else expected) + entropy(draw)
            total, count = total + draw, count + 1
        self.mean = total if count == 1 else total / count  # of the draws, (N, C, …)
        self.probabilities = self.mean if plain is None else plain  # the prediction, (N, C, …)
        self.expected_entropy = None if expected is None else expected / count  # of a draw, (N, …); None for one draw

    @classmethod
    def joined(cls, parts: Sequence[Predictive]) -> Predictive:
        """Parts of the samples as one, from the same model and number of draws."""
        columns = zip(*map(cls._columns, parts), strict=True)
        return cls._of(*(None if column[0] is None else torch.cat(column) for column in columns))

    @classmethod
    def in_shares(cls, predict: Callable[[Tensor], Predictive], images: Tensor) -> Predictive:
        """What `predict` says of images, each process of a share, if several work together."""
        if not is_shared(len(images)):
            return predict(images)
        return cls._of(*in_shares(lambda share: predict(share)._columns(), images))

    def _columns(self) -> tuple[Tensor | None, ...]:
        return self.mean, self.statistics, self.embedding, self.probabilities, self.expected_entropy

    @classmethod
    def _of(cls, *columns: Tensor | None) -> Predictive:
        mean, statistics, embedding, probabilities, expected_entropy = columns
        assert mean is not None
        whole = cls([mean], statistics, embedding, probabilities)
        whole.expected_entropy = expected_entropy
        return whole

    @cached_property
    def entropy(self) -> Tensor:
        """Of the prediction, in nats, (N, …): 0 when certain, log(C) when clueless."""
        return entropy(self.probabilities)

    @cached_property
    def predictive_entropy(self) -> Tensor:
        """Of the draws' mean, in nats, (N, …); that of the prediction, if nothing was drawn."""
        return entropy(self.mean)

    @cached_property
    def mutual_information(self) -> Tensor:
        """Entropy of the draws' mean minus their mean entropy, (N, …): what they disagree about. 0 for one draw."""
        if self.expected_entropy is None:
            return torch.zeros_like(self.entropy)
        return (self.predictive_entropy - self.expected_entropy).clamp(min=0)


def entropy(probabilities: Tensor) -> Tensor:
    """−Σ p log p over dimension 1, in nats; certain predictions have 0.

    >>> entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    tensor([0.6931, 0.0000])
    """
    surprise: Tensor = torch.special.entr(probabilities)
    return surprise.sum(1)


def divergence_from_mean(logits: Tensor) -> Tensor:
    """Σᵥ KL(pᵥ ‖ p̄) over V views of each sample, (V, N, C, …) → (N, …); by V it is the Jensen–Shannon divergence.

    >>> divergence_from_mean(torch.tensor([[[0.0, 0.0]], [[0.0, 0.0]]]))
    tensor([0.])
    """
    log_p = logits.log_softmax(2)
    log_mean = torch.logsumexp(log_p, 0) - math.log(len(logits))
    return (log_p.exp() * (log_p - log_mean)).sum((0, 2))
