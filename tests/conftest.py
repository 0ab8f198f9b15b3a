"""Set up before anything of Regard is imported: written shapes are checked, and one core is enough."""

import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import jaxtyping
import torch

# Configs check themselves, in our own words; imported before the hook, they stay out of its reach.
import regard.decode.config
import regard.mixers.config
import regard.models.bert_config
import regard.models.captioner_config
import regard.models.elmo_config
import regard.models.gpt2_config
import regard.models.seq2seq_config
import regard.models.word_input_config

if torch.cuda.is_available():  # Triton reads the source of its kernels, which the hook would wrap
    import regard.kernels.argmax_cuda
    import regard.kernels.cross_entropy_cuda
    import regard.kernels.step_attention_cuda
    import regard.kernels.step_linear_cuda  # noqa: F401

CHECKED = ["regard.kernels", "regard.layers", "regard.mixers", "regard.models", "regard.decode"]
jaxtyping.install_import_hook(CHECKED, "beartype.beartype")

import hypothesis  # noqa: E402
import pytest  # noqa: E402

from regard.models.language_model import LanguageModel  # noqa: E402
from regard.models.table import MODELS, build_model  # noqa: E402
from regard.settings import Settings  # noqa: E402

hypothesis.settings.register_profile("regard", deadline=None, max_examples=25)
hypothesis.settings.load_profile("regard")
torch.set_num_threads(1)

TINY = {"d_model": 8, "d_hidden": 12, "d_ff": 12, "n_layers": 2, "n_heads": 2, "max_context": 7, "n_window": 3,
        "p_dropout": 0.0, "max_memory": 4}  # fmt: skip


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tests never read or write the user's cache; runs that several files share were trained with this one."""
    folder = tmp_path_factory.mktemp("cache")
    os.environ["REGARD_CACHE"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_config() -> Callable[..., Settings]:
    """`tiny_config(name, **changes)`: the smallest config of a model that still has all its parts."""

    def make(name: str, **changes: object) -> Settings:
        kind = MODELS[name].config
        names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
        return kind.from_dict({key: value for key, value in TINY.items() if key in names} | changes)

    return make


@pytest.fixture(scope="session")
def tiny_model(tiny_config: Callable[..., Settings]) -> Callable[..., LanguageModel]:
    """`tiny_model(name, seed=0, vocab_size=11, **changes)`: in float64, and with weights large enough to matter."""

    def make(name: str, seed: int = 0, vocab_size: int = 11, **changes: object) -> LanguageModel:
        model = build_model(name, tiny_config(name, **changes), vocab_size).double()
        draws = torch.Generator().manual_seed(seed)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.5, generator=draws)
        return model

    return make
