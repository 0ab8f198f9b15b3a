import subprocess
import sys

import pytest

from regard.errors import RegardError
from regard.mixers.config import TransformerConfig
from regard.models.table import MODELS, build_model, model_config, model_entry

GRADIENT = [name for name, entry in MODELS.items() if "language-model" in entry.tasks and not entry.is_counted]


def test_the_table_is_read_without_torch() -> None:
    code = "import sys; import regard.models.table; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_unknown_model_is_told_its_nearest_name() -> None:
    with pytest.raises(RegardError, match=r"There is no model 'lsmt'\. Did you mean 'lstm'\? There are: ngram, bag"):
        model_entry("lsmt")


def test_an_unknown_key_is_told_its_nearest_name() -> None:
    with pytest.raises(RegardError, match=r"Unknown key 'model\.d_modle'\. Did you mean 'model.d_model'\?"):
        model_config("lstm", {"d_modle": 3})


def test_a_counted_model_is_not_built() -> None:
    with pytest.raises(RegardError, match="The model 'ngram' is counted, not built: fit it on a text instead"):
        build_model("ngram", model_config("ngram"), 10)


@pytest.mark.parametrize("name", ["attention", "transformer"])
def test_heads_must_share_the_width(name: str) -> None:
    with pytest.raises(RegardError, match=r"d_model 10 cannot be shared by n_heads 4.*Use d_model 8 or 12\."):
        model_config(name, {"d_model": 10, "n_heads": 4})


@pytest.mark.parametrize("name", [name for name in GRADIENT if name != "gpt2"])  # its default is GPT-2 small
def test_defaults_make_a_model_of_about_a_million_parameters(name: str) -> None:
    model = build_model(name, model_config(name), 4096)
    assert 0.9e6 < model.n_parameters < 1.5e6


def test_the_feed_forward_width_is_four_times_the_model_where_unset() -> None:
    unset = build_model("transformer", TransformerConfig(d_model=8, n_heads=2), 11)
    given = build_model("transformer", TransformerConfig(d_model=8, n_heads=2, d_ff=32), 11)
    assert unset.n_parameters == given.n_parameters


def test_every_entry_says_what_it_is_and_where_it_is_from() -> None:
    for entry in MODELS.values():
        assert "\n" not in entry.summary
        assert any(year.isdigit() for year in entry.paper.replace(";", " ").split())
