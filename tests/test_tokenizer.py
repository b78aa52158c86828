"""Tokenizers: exact bytes out, for the tutor's own and for both styles of tokenizer.json."""

import codecs
import json
import sys

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from minipaged.model.chat import ChatTemplate
from minipaged.model.hf_tokenizer import HFTokenizer
from minipaged.model.tokenizer import ASSISTANT, BEGIN, END, SYSTEM_PROMPT, USER, TutorTokenizer

TEXTS = ["What is the KV cache?", "  two  spaces\n\ttab ", "块表 é ß 🚀 naïve", "", "a\u0301"]


def test_tutor_round_trip_and_prompt():
    tokenizer = TutorTokenizer()
    for text in TEXTS:
        assert tokenizer.decode_bytes(tokenizer.encode(text)).decode() == text
    prompt = tokenizer.prompt_ids("块?")
    system, question = list(SYSTEM_PROMPT.encode()), list("块?".encode())
    assert prompt == [BEGIN, *system, USER, *question, ASSISTANT]
    assert len(system) <= 80
    assert tokenizer.decode_bytes([BEGIN, 72, USER, 105, ASSISTANT, END]) == b"Hi"
    assert tokenizer.eos_token_ids == (END,)
    assert max(BEGIN, END, USER, ASSISTANT) == tokenizer.vocab_size - 1


def test_tutor_refuses_ids_of_another_model():
    with pytest.raises(ValueError, match="token id 260 is outside"):
        TutorTokenizer().decode_bytes([72, 260])
    assert TutorTokenizer().encode("\ud800!") == list(b"?!")


def byte_level(folder):
    """A small GPT-2-style tokenizer, as SmolLM2 and Llama 3 use it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|end|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["what is the cache of the block"] * 3, trainer)
    tokenizer.add_tokens(["<tool é>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


def sentence_piece(folder):
    """A small Llama-2-style tokenizer: marks for spaces, single bytes for unknown characters."""
    pieces = ["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "▁a", "b"]
    model = models.BPE(
        vocab={piece: i for i, piece in enumerate(pieces)},
        merges=[("▁", "a")],
        byte_fallback=True,
        unk_token="<unk>",
        fuse_unk=True,
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(steps)
    tokenizer.add_special_tokens(["<unk>", "</s>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


@pytest.mark.parametrize("style", [byte_level, sentence_piece])
def test_bytes_are_exact_at_every_cut(tmp_path, style):
    original = style(tmp_path)
    tokenizer = HFTokenizer(tmp_path)
    for text in [*TEXTS, "a b  a", "the cache"]:
        ids = tokenizer.encode(text)
        assert tokenizer.decode_bytes(ids) == text.encode()
        assert original.decode(ids) == text
        assert b"".join(tokenizer.decode_bytes([one]) for one in ids) == text.encode()
        stream = codecs.getincrementaldecoder("utf-8")()
        assert "".join(stream.decode(tokenizer.decode_bytes([one])) for one in ids) == text


@pytest.mark.parametrize("style", [byte_level, sentence_piece])
def test_one_character_spreads_over_tokens(tmp_path, style):
    style(tmp_path)
    tokenizer = HFTokenizer(tmp_path)
    ids = tokenizer.encode("🚀")
    assert [tokenizer.decode_bytes([one]) for one in ids] == [b"\xf0", b"\x9f", b"\x9a", b"\x80"]


def test_special_and_unknown_ids_give_no_bytes(tmp_path):
    original = byte_level(tmp_path)
    tokenizer = HFTokenizer(tmp_path)
    end, tool = original.token_to_id("<|end|>"), original.token_to_id("<tool é>")
    assert tokenizer.decode_bytes([end, tool, end]) == "<tool é>".encode()
    assert tokenizer.vocab_size == tool + 1
    assert tokenizer.decode_bytes([tokenizer.vocab_size + 5]) == b""


def test_end_tokens_and_chat_template_come_from_the_folder(tmp_path):
    original = byte_level(tmp_path)
    plain = HFTokenizer(tmp_path)
    assert plain.eos_token_ids == () and plain.prompt_ids("the") == plain.encode("the")
    config = {
        "eos_token": {"content": "<|end|>"},
        "chat_template": "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{{ eos_token }}"
        "{% endfor %}{% if add_generation_prompt %}<bot>{% endif %}",
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    (tmp_path / "config.json").write_text('{"eos_token_id": 7}')
    chat = HFTokenizer(tmp_path)
    end = original.token_to_id("<|end|>")
    assert chat.eos_token_ids == (7, end)
    assert chat.prompt_ids("the") == [*plain.encode("<user>the"), end, *plain.encode("<bot>")]


def test_chat_template_cannot_reach_python():
    template = ChatTemplate("{{ messages.__class__.__mro__ }}", {})
    with pytest.raises(Exception, match="unsafe"):
        template.render("hello")


def test_missing_file_and_unknown_style_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"tokenizer\.json is missing: a model folder holds"):
        HFTokenizer(tmp_path)
    byte_level(tmp_path)
    definition = json.loads((tmp_path / "tokenizer.json").read_text())
    definition["decoder"] = {"type": "WordPiece", "prefix": "##", "cleanup": True}
    (tmp_path / "tokenizer.json").write_text(json.dumps(definition))
    with pytest.raises(ValueError, match="only byte-level BPE and SentencePiece"):
        HFTokenizer(tmp_path)


def test_without_the_tokenizers_package_the_extra_is_named(tmp_path, monkeypatch):
    byte_level(tmp_path)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ValueError, match=r'pip install "minipaged\[models\]"'):
        HFTokenizer(tmp_path)
