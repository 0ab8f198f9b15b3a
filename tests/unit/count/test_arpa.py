"""ARPA files: what they hold, names that would break them, and what is said about broken ones."""

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from regard.count import arpa_reader
from regard.count.arpa import escape, unescape
from regard.count.arpa_reader import read_arpa
from regard.count.config import NgramConfig
from regard.count.ngram import NgramModel
from regard.errors import RegardError

END, A, B = range(3)
WORDS = ["</s>", "a", "b"]

# A right file; the broken ones below are this one with a line changed.
RIGHT = """\\data\\
ngram 1=4
ngram 2=3

\\1-grams:
-0.5\t</s>\t0
0\t<s>\t-0.3
-0.4\ta\t-0.2
-0.6\tb

\\2-grams:
-0.1\t<s> a
-0.2\ta b
-0.3\tb </s>

\\end\\
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "model.arpa"
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def bigram() -> NgramModel:
    return NgramModel.fit(NgramConfig(order=2, smoothing="mle"), np.array([A, B, END, A, A, END]), 3, unk=None)


def test_the_file_is_what_the_format_says(tmp_path):
    bigram().write_arpa(tmp_path / "model.arpa", WORDS)
    # c(a) = 3 of 6 tokens; after a: b, a and </s> once each; log10(1/2) = -0.3010300, log10(1/3) = -0.4771213.
    assert (tmp_path / "model.arpa").read_text() == (
        "\\data\\\nngram 1=4\nngram 2=5\n\n"
        "\\1-grams:\n-0.4771213\t</s>\t0.0000000\n-0.3010300\ta\t-99.0000000\n-0.7781513\tb\t-99.0000000\n"
        "0.0000000\t<s>\t-99.0000000\n\n"
        "\\2-grams:\n-0.4771213\ta </s>\n-0.4771213\ta a\n-0.4771213\ta b\n0.0000000\tb </s>\n0.0000000\t<s> a\n\n"
        "\\end\\\n"
    )


def test_a_file_is_read_as_it_says(tmp_path):
    model, words = NgramModel.read_arpa(write(tmp_path, RIGHT))
    assert words == WORDS
    assert model.n_ngrams == [4, 3]
    # <s> a is stored; a a backs off: -0.2 - 0.4; a </s> backs off: -0.2 - 0.5.
    assert (model.nats(np.array([A, A, END])) / np.log(10)).tolist() == pytest.approx([0.1, 0.6, 0.7], abs=1e-15)


def test_specials_may_stand_anywhere_and_get_their_ids(tmp_path):
    text = RIGHT.replace("-0.5\t</s>\t0\n", "").replace("-0.6\tb\n", "-0.6\tb\n-0.5\t</s>\t0\n-0.7\t<unk>\n")
    model, words = NgramModel.read_arpa(write(tmp_path, text.replace("ngram 1=4", "ngram 1=5")))
    assert words == ["</s>", "<unk>", "a", "b"]
    assert model.unk == 1
    assert (model.nats(np.array([2, 2, END])) / np.log(10)).tolist() == pytest.approx([0.1, 0.6, 0.7], abs=1e-15)


def test_comments_before_the_data_and_other_line_ends_are_read(tmp_path):
    model, _ = NgramModel.read_arpa(write(tmp_path, "made by hand\n\n" + RIGHT.replace("\n", "\r\n")))
    assert model.n_ngrams == [4, 3]


def test_minus_99_is_the_logarithm_of_zero(tmp_path):
    model, _ = NgramModel.read_arpa(write(tmp_path, RIGHT.replace("-0.4\ta\t-0.2", "-0.4\ta\t-99")))
    assert np.exp(model.next_log_probs([A])).tolist() == pytest.approx([0, 0, 10**-0.2], abs=1e-15)


def test_the_start_symbol_is_written_as_given_whatever_it_was_read_as(tmp_path):
    model, words = NgramModel.read_arpa(write(tmp_path, RIGHT.replace("0\t<s>", "-99\t<s>")))
    model.write_arpa(tmp_path / "again.arpa", words)
    assert "\n0.0000000\t<s>\t-0.3000000\n" in (tmp_path / "again.arpa").read_text()


def test_a_suffix_need_not_be_there(tmp_path):
    # "<s> a b" is stored, as pruning may leave it, without "a b".
    text = RIGHT.replace("ngram 2=3", "ngram 2=2\nngram 3=1").replace("-0.2\ta b\n", "")
    model, _ = NgramModel.read_arpa(write(tmp_path, text.replace("\\end\\", "\\3-grams:\n-0.05\t<s> a b\n\n\\end\\")))
    assert (model.nats(np.array([A, B])) / np.log(10)).tolist() == pytest.approx([0.1, 0.05], abs=1e-15)
    assert -model.next_log_probs([A])[B] / np.log(10) == pytest.approx(0.05, abs=1e-15)


def test_gzip_is_written_by_name_and_read_by_content(tmp_path):
    bigram().write_arpa(tmp_path / "model.arpa", WORDS)
    bigram().write_arpa(tmp_path / "model.arpa.gz", WORDS)
    packed = (tmp_path / "model.arpa.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "model.arpa").read_bytes()
    (tmp_path / "renamed").write_bytes(packed)
    assert NgramModel.read_arpa(tmp_path / "renamed")[0].n_ngrams == [4, 5]


def test_the_same_model_is_written_as_the_same_bytes(tmp_path):
    for name in ("one.arpa.gz", "two.arpa.gz"):
        bigram().write_arpa(tmp_path / name, WORDS)
    assert (tmp_path / "one.arpa.gz").read_bytes() == (tmp_path / "two.arpa.gz").read_bytes()


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("corn", "corn"),
        ("%", "%"),
        ("<UNK>", "<0x3C>UNK>"),
        ("</s>", "<0x3C>/s>"),
        ("\n\n", "<0xA><0xA>"),
        (" a\tb", "<0x20>a<0x9>b"),
        ("\u2028", "<0x2028>"),
        ("\udc80", "<0xDC80>"),
        ("<0x20>", "<0x3C>0x20>"),
        ("<0x>", "<0x3C>0x>"),
        ("", "<0x>"),
        ("na\u00efve\u00a0", "na\u00efve\u00a0"),
    ],
)
def test_names_are_escaped_and_back(word, name):
    assert escape(word) == name
    assert unescape(name) == word


def test_words_come_back_whatever_they_are(tmp_path):
    words = ["<eos>", " ", "", "\n", "<s>", "</s>", "<unk>", "<0x20>", "\u20ac", "a b"]
    ids = np.array([*range(1, 10), 0])
    model = NgramModel.fit(NgramConfig(order=3), ids, len(words), unk=None)
    model.write_arpa(tmp_path / "model.arpa", words)
    again, read = NgramModel.read_arpa(tmp_path / "model.arpa")
    assert read == ["</s>", *words[1:]]
    assert again.unk is None
    assert again.nats(ids) == pytest.approx(model.nats(ids), abs=1e-6)


def test_two_tokens_of_one_name_are_refused(tmp_path):
    with pytest.raises(RegardError, match="Tokens 1 and 2 are both called 'a'; an ARPA file needs a different word"):
        bigram().write_arpa(tmp_path / "model.arpa", ["</s>", "a", "a"])
    assert not list(tmp_path.iterdir())


def test_words_must_be_as_many_as_the_tokens(tmp_path):
    with pytest.raises(RegardError, match="The model has 3 tokens, but 2 words were given"):
        bigram().write_arpa(tmp_path / "model.arpa", ["</s>", "a"])


BROKEN = {
    "no data": ("\\data\\", "data", "line 16: the file ends here, before '\\data\\'"),
    "no sizes": ("ngram 1=4\nngram 2=3\n", "", "line 3: expected 'ngram 1=COUNT' before the 1-grams, found nothing"),
    "a size skipped": ("ngram 1=4\n", "", "line 2: expected 'ngram 1=COUNT', found 'ngram 2=3'"),
    "a bad size": ("ngram 2=3", "ngram 2=x", "line 3: expected 'ngram 2=COUNT', found 'ngram 2=x'"),
    "too few": ("ngram 1=4", "ngram 1=6", "line 10: the 1-grams end here, 2 1-grams before all that \\data\\ promises"),
    "too many": ("ngram 1=4", "ngram 1=3", "line 9: expected '\\2-grams:', found '-0.6 b': \\data\\ promises only 3"),
    "too many of the highest": (
        "2=3",
        "2=2",
        "line 14: expected '\\end\\', found '-0.3 b </s>': \\data\\ promises only 2",
    ),
    "no end": ("\\end\\\n", "", "line 15: the file ends here, before '\\end\\'"),
    "cut short": (RIGHT[RIGHT.index("-0.2\ta b") :], "", "line 12: the file ends here, 2 2-grams before all"),
    "cut in a line": ("b </s>\n\n\\end\\\n", "b", "line 14: expected a number, 2 words, found '-0.3 b'"),
    "cut before a section": (
        RIGHT[RIGHT.index("\n\\2-grams") :],
        "",
        "line 9: the file ends here, before '\\2-grams:'",
    ),
    "a bad number": ("-0.2\ta b", "-O.2\ta b", "line 13: '-O.2' is no number"),
    "a bad weight": ("-0.3\n-0.4", "much\n-0.4", "line 7: 'much' is no number"),
    "not a number": ("-0.1\t<s> a", "nan\t<s> a", "line 12: 'nan' is no logarithm of a probability"),
    "a probability over one": ("-0.4\ta", "0.4\ta", "line 8: '0.4' is no logarithm of a probability"),
    "an infinite weight": ("\ta\t-0.2", "\ta\tinf", "line 8: 'inf' is no logarithm"),
    "a weight too many": ("-0.1\t<s> a", "-0.1\t<s> a\t0", "line 12: expected a number, 2 words, found '-0.1 <s> a 0'"),
    "a word too many": ("-0.6\tb", "-0.6\tb c 0", "line 9: expected a number, 1 words and perhaps a number, found"),
    "an unknown word": ("\ta b", "\ta c", "line 13: 'c' is not among the 1-grams"),
    "an ngram twice": ("-0.3\tb </s>", "-0.3\ta b", "line 14: the same n-gram as on line 13"),
    "a word twice": ("-0.6\tb", "-0.6\ta", "line 9: the same n-gram as on line 8"),
    "no start symbol": ("0\t<s>", "0\tc", "line 9: the 1-grams end without <s>"),
    "no end symbol": ("-0.5\t</s>", "-0.5\tc", "line 9: the 1-grams end without </s>"),
    "a start predicted": ("\ta b", "\ta <s>", "line 13: <s> is never predicted"),
    "another order": ("\\2-grams:", "\\3-grams:", "line 11: expected '\\2-grams:', found '\\3-grams:'"),
}


@pytest.mark.parametrize(("old", "new", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_refused_with_its_line(tmp_path, old, new, message):
    assert old in RIGHT
    with pytest.raises(RegardError) as refused:
        NgramModel.read_arpa(write(tmp_path, RIGHT.replace(old, new, 1)))
    assert message in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path / "model.arpa"))
    assert str(refused.value).endswith("Write or fetch this ARPA file again.")


def test_an_ngram_without_its_context_is_refused_with_its_line(tmp_path):
    text = RIGHT.replace("2=3", "2=3\nngram 3=1").replace("\\end\\", "\\3-grams:\n-0.1\ta a b\n\n\\end\\")
    with pytest.raises(RegardError, match="line 18: its context 'a a' is not among the 2-grams"):
        NgramModel.read_arpa(write(tmp_path, text))


def test_words_that_are_not_utf8_are_refused_with_their_line(tmp_path):
    path = write(tmp_path, RIGHT)
    path.write_bytes(path.read_bytes().replace(b"\tb", b"\t\xff").replace(b" b", b" \xff"))
    with pytest.raises(RegardError, match=r"line 9: .* is not UTF-8"):
        NgramModel.read_arpa(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(RegardError, match=r"There is no file .*model\.arpa; give the path of an ARPA file"):
        NgramModel.read_arpa(tmp_path / "model.arpa")


def test_a_gzip_file_cut_short_is_refused(tmp_path):
    whole = gzip.compress(RIGHT.encode())
    (tmp_path / "model.arpa.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RegardError, match=r"model\.arpa\.gz cannot be decompressed: .*Is it complete"):
        NgramModel.read_arpa(tmp_path / "model.arpa.gz")


def test_errors_count_lines_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("regard.count.arpa_reader.BLOCK", 1)
    with pytest.raises(RegardError, match="line 13: '-O2' is no number"):
        NgramModel.read_arpa(write(tmp_path, RIGHT.replace("-0.2\ta b", "-O2\ta b")))
    with pytest.raises(RegardError, match="line 12: the file ends here, 2 2-grams before all"):
        NgramModel.read_arpa(write(tmp_path, RIGHT[: RIGHT.index("-0.2\ta b")]))


def test_a_file_of_long_lines_is_refused_before_it_is_split_in_millions_of_fields(tmp_path: Path) -> None:
    line = b"aa " * 20_000 + b"\n"
    (tmp_path / "a.arpa.gz").write_bytes(gzip.compress(b"\\data\\\nngram 1=5000\n\n\\1-grams:\n" + line * 400))
    tracemalloc.start()
    with pytest.raises(RegardError, match="line 5: expected a number, 1 words, found 'aa aa"):
        read_arpa(tmp_path / "a.arpa.gz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300_000_000


def test_a_block_ends_after_some_bytes_and_every_line_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["</s>", "<s>", *(f"word{i}" for i in range(1000))]
    grams = "".join(f"-3.5\t{word}\n" for word in words)
    (tmp_path / "a.arpa").write_text(f"\\data\\\nngram 1={len(words)}\n\n\\1-grams:\n{grams}\n\\end\\\n")
    whole = read_arpa(tmp_path / "a.arpa")
    monkeypatch.setattr(arpa_reader, "MAX_BLOCK", 100)
    assert read_arpa(tmp_path / "a.arpa")[2] == whole[2]
    assert len(whole[2]) == len(words) - 1, "all but <s>, which is never predicted"
