"""Image classifiers of `transformers`, from a local folder or by their name on the hub: `hf:PATH`."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_module_registration_hook

from onedomain.data.files import read_file
from onedomain.errors import UserError
from onedomain.networks.normalise import DEVIATION, MEAN, Normalise

PREFIX = "hf:"
_WEIGHTS = "model.safetensors"
MOST_BYTES = 2**23  # of a configuration
# By these, and by names that begin with _, a configuration lets the library fetch code, kernels or other weights.
_FETCHED = {"auto_map", "attn_implementation", "experts_implementation", "quantization_config", "use_kernels"}
_FETCHED |= {"backbone", "backbone_kwargs", "use_pretrained_backbone", "use_timm_backbone", "model_args"}
# A run.yaml may ask for a network that no machine can build. The largest published ones have a tenth of this.
MOST_MODULES, MOST_PARAMETERS, MOST_NUMBER = 10_000, 4 * 10**9, 10**6


class HubClassifier(nn.Module):
    """A classifier of `transformers` as it is. Images are expected from 0 to 1 and normalised as its files say.

    z = F(x) is what its last linear layer is given. Uncertain SDG perturbs its first convolution by default.
    """

    def __init__(self, path: str, classes: int, config: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.path = path
        self.config = _config(path, classes) if config is None else dict(config)  # what run.yaml keeps
        self.described = _described(path, self.config)
        model = _transformers().AutoModelForImageClassification.from_config(self.described, trust_remote_code=False)
        self.normalise = Normalise(*(_of_channels(path, self.config, name) for name in ("image_mean", "image_std")))
        heads = [name for name, each in model.named_modules() if isinstance(each, nn.Linear)]
        first = [name for name, each in model.named_modules() if isinstance(each, nn.Conv2d)]
        if not heads or model.get_submodule(heads[-1]).out_features != classes:
            raise UserError(
                "network", f"{PREFIX}{path} does not end in a linear layer", "an image classifier that does"
            )
        self.head = heads[-1]
        place, _, name = self.head.rpartition(".")
        marked = nn.Sequential(OrderedDict(z=nn.Identity(), linear=model.get_submodule(self.head)))
        setattr(model.get_submodule(place), name, marked)
        self.model = model
        self.embedding = f"model.{self.head}.z"
        self.perturb = (f"model.{first[0]}",) if first else ()

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.model(pixel_values=self.normalise(images)).logits
        return logits

    def published(self) -> Path:
        """The file with its weights."""
        file = _file(self.path, _WEIGHTS)
        if file is None:
            raise UserError("network", f"{PREFIX}{self.path} has no {_WEIGHTS}", "weights as safetensors")
        return file

    def renamed(self, published: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Weights by the names of a file, which the library knows in several versions, by ours."""
        loaded, found = type(self.model).from_pretrained(
            None,
            config=self.described,
            state_dict=dict(published),
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
        without = {*found["missing_keys"], *(name for name, *_ in found["mismatched_keys"])}
        ours = {name: published[name] for name in found["unexpected_keys"] if name in published}
        for name, tensor in loaded.state_dict().items():
            layer, _, parameter = name.rpartition(".")
            if name not in without:
                ours[f"model.{layer}.linear.{parameter}" if layer == self.head else f"model.{name}"] = tensor
        return ours


def _config(path: str, classes: int) -> dict[str, Any]:
    """What describes the network: its own configuration, and how its images are normalised."""
    file = _file(path, "config.json")
    if file is None:
        raise UserError("network", f"{PREFIX}{path} has no config.json", "a folder as `save_pretrained` makes it")
    processor = _file(path, "preprocessor_config.json")
    images = {} if processor is None else _read(processor)
    return {
        **{name: value for name, value in _read(file).items() if name not in ("id2label", "label2id", "num_labels")},
        "num_labels": classes,
        "image_mean": images.get("image_mean", MEAN),
        "image_std": images.get("image_std", DEVIATION),
    }


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_file(file, MOST_BYTES))
    except (ValueError, RecursionError) as error:
        raise UserError(str(file), f"cannot be read ({error})", "JSON, as `save_pretrained` writes it") from None
    if not isinstance(content, dict):
        raise UserError(str(file), f"holds a {type(content).__name__}", "a JSON object")
    return content


def _described(path: str, config: Mapping[str, Any]) -> Any:
    """The library's object for a configuration, if it is one of an image classifier."""
    library = _transformers()
    left_out = ("model_type", "image_mean", "image_std")
    try:
        described = library.AutoConfig.for_model(
            config["model_type"], **{name: value for name, value in _harmless(config).items() if name not in left_out}
        )
        with torch.device("meta"), _few_modules():
            empty = library.AutoModelForImageClassification.from_config(described, trust_remote_code=False)
        if sum(each.numel() for each in empty.parameters()) > MOST_PARAMETERS:
            raise ValueError(f"it has more than {MOST_PARAMETERS:,} parameters")
    except Exception as error:  # the library's own checks of a configuration raise errors of many kinds
        reason = (str(error).splitlines() or [type(error).__name__])[0][:150]
        raise UserError("network", f"{PREFIX}{path} cannot be built ({reason})", "an image classifier") from None
    return described


def _of_channels(path: str, config: Mapping[str, Any], name: str) -> list[float]:
    given = config.get(name)
    numbers = given if isinstance(given, (list, tuple)) else []
    lowest = -MOST_NUMBER if name == "image_mean" else 1e-6
    if not numbers or not all(type(each) in (int, float) and lowest <= each <= MOST_NUMBER for each in numbers):
        raise UserError("network", f"{PREFIX}{path} has {name} {given!r:.60}", "a number for each channel")
    return list(map(float, numbers))


def _harmless(config: Any) -> Any:
    """A configuration, which may be that of a stranger's run, without what would fetch or run anything."""
    if isinstance(config, int) and abs(config) > MOST_NUMBER:
        raise ValueError(f"it has a number above {MOST_NUMBER:,}")
    if isinstance(config, list):
        return [_harmless(each) for each in config]
    if not isinstance(config, Mapping):
        return config
    kept = (name for name in config if not (name in _FETCHED or name.startswith("_")))
    return {name: _harmless(config[name]) for name in kept}


@contextmanager
def _few_modules() -> Iterator[None]:
    """Stop the making of a network that does not end soon."""
    made = count(1)

    def made_one(*_: Any) -> None:
        if next(made) > MOST_MODULES:
            raise ValueError(f"it has more than {MOST_MODULES:,} layers")

    watching = register_module_module_registration_hook(made_one)
    try:
        yield
    finally:
        watching.remove()


def _file(path: str, name: str) -> Path | None:
    """A file of a local folder, or of the hub's; nothing is fetched for a folder."""
    if Path(path).is_dir():
        return Path(path) / name if (Path(path) / name).is_file() else None
    if path.count("/") > 1 or path.startswith((".", "/", "~")):
        raise UserError("network", f"{path} is not a folder", f"{PREFIX}FOLDER, or {PREFIX}NAME of the hub")
    try:
        found = _transformers().utils.cached_file(path, name, _raise_exceptions_for_missing_entries=False)
    except OSError as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:150]
        raise UserError(
            "network", f"{PREFIX}{path} cannot be had ({reason})", "a name of the hub, or a folder"
        ) from None
    return None if found is None else Path(found)


def _transformers() -> Any:
    try:
        import transformers
    except ImportError:
        given = "needs transformers, which is not installed"
        raise UserError("network", given, "pip install 'onedomain[hub]'") from None
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    return transformers
