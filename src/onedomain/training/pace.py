"""How long a training takes: guessed from one plain step before it starts, then by what steps and domains took."""

from __future__ import annotations

import time

import torch

from onedomain.data.progress import duration, say
from onedomain.methods.base import Method
from onedomain.networks.named import in_mode

WORTH_TELLING, LONG = 60.0, 3600.0  # seconds


class Pace:
    """The seconds that are left of a training: of steps, and of the domains that are made between them.

    `plain` is what a step of ERM takes. A method begins with such steps; what it costs then is not known before.
    """

    def __init__(self, method: Method, plain: float) -> None:
        self.method, self.plain = method, plain
        self.step: float | None = None  # mean seconds of a step as it is now
        self.steps = 0  # that it is the mean of
        self.preparing = self.of_made = 0.0  # seconds of making domains, and of those that are made
        self.before = self.made = method.prepared

    def stepped(self, done: int, seconds: float) -> None:
        """A step took so long; the first steps of a method say nothing of the later ones."""
        if self.step is None or done == self.method.begins + 1:
            self.step, self.steps = 0.0, 0
        self.steps += 1
        self.step += (seconds - self.step) / self.steps

    def prepared(self, seconds: float) -> None:
        self.preparing += seconds

    def left(self, done: int) -> float:
        settings = self.method.settings
        plain = max(0, min(self.method.begins, settings.steps) - done)
        later = settings.steps - done - plain
        begun = done > self.method.begins and self.step is not None
        of_later = self.step if begun else self.plain * self.method.step_cost
        return plain * (self.step or self.plain) + later * (of_later or 0.0) + self._to_prepare()

    def _to_prepare(self) -> float:
        if self.method.begins >= self.method.settings.steps:
            return 0.0
        if self.method.prepared > self.made:
            self.made, self.of_made = self.method.prepared, self.preparing
        cost = self.method.preparation_cost(len(self.method.source)) / self.method.settings.batch_size * 32
        whole = self.of_made / (self.made - self.before) if self.made > self.before else cost * self.plain
        return max(0.0, whole * (1 - self.made) - (self.preparing - self.of_made))


def seconds_of_a_plain_step(method: Method) -> float:
    """What a step of ERM takes on this machine: the network there and back, on images that are all black."""
    module = method.network.module
    images = torch.zeros(method.settings.batch_size, *method.image_shape, device=method.device)
    images = images.contiguous(memory_format=torch.channels_last)
    buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
    taken = 0.0
    with in_mode(module, training=True):
        for _ in range(2):  # the first one is slower
            begun = time.monotonic()
            logits = method.network(images)
            gradients = torch.autograd.grad(
                logits.float().sum(), [p for p in module.parameters() if p.requires_grad], allow_unused=True
            )
            _ = [float(each.sum()) for each in gradients[:1] if each is not None]  # an accelerator is waited for
            taken = time.monotonic() - begun
    for name, buffer in module.named_buffers():
        buffer.copy_(buffers[name])
    return taken


def tell(method: Method, done: int, seconds: float) -> None:
    """Before a training starts: how long it takes, if that is long; and if it is too short for its method."""
    steps = method.settings.steps
    if steps <= method.begins:
        say(f"note: {method.name} begins after {method.begins} steps: {steps} are plain training")
    if seconds < WORTH_TELLING:
        return
    height, width = method.image_shape[1:]
    what = f"{steps - done} steps with images of {height}×{width} on {method.device}"
    hint = "" if seconds < LONG else "; a smaller size, fewer steps or another method take less"
    say(f"{'note: ' if hint else ''}about {duration(seconds)} for {what}{hint}")
