"""The tutor's corpus, its look-up, and a short training run that must reach exactness."""

import json
import random
import time

import pytest
import torch
import transformers

from minipaged.model.loader import load_llama
from minipaged.model.tokenizer import END, TutorTokenizer
from minipaged.model.tutor import corpus, train
from minipaged.model.tutor.corpus import REFUSAL, Pair, known, load_pairs, nearest, pairs
from minipaged.model.tutor.examples import careless, collate, encode, epochs
from minipaged.model.tutor.verify import margins, verify


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Training takes two, and would leave them to all tests after it, beside other processes."""
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)


def write(folder, text, name="a.toml"):
    (folder / name).write_text(text, encoding="utf-8")


PAIR = '[[pair]]\ntopic = "t"\nquestions = ["{}"]\nanswer = "{}"\n'


def test_every_pair_fits_the_model():
    for pair in pairs():
        example = encode(pair.question, pair.answer)
        assert len(example.token_ids) <= train.CONFIG.max_position_embeddings
        assert len(pair.answer.encode()) <= 400
        assert pair.answer == pair.answer.strip() and "\n" not in pair.answer


def test_known_ignores_case_punctuation_space_and_width():
    question = next(pair.question for pair in pairs() if pair.question.endswith("?"))
    for form in (question.lower(), f"  {question.rstrip('?')} ", question.replace("?", "？")):
        assert known(form)
    assert not known(question + " really") and not known("") and not known("???")


def test_nearest_finds_a_question_again_and_leaves_refusals_out():
    subject = [pair for pair in pairs() if pair.topic != REFUSAL]
    answers = {pair.question: pair.answer for pair in subject}
    found_again = sum(
        answers[nearest(careless_typo(pair.question), 1)[0]] == pair.answer for pair in subject
    )
    assert found_again >= 0.95 * len(subject)
    close = nearest("what does a block table do", n=3)
    assert len(close) == 3 == len({answers[question] for question in close})
    assert any("block table" in question for question in close)
    for pair in pairs():
        if pair.topic == REFUSAL:
            assert set(nearest(pair.question)) <= set(answers)


def careless_typo(question):
    middle = len(question) // 2
    return question[:middle] + question[middle + 1 :]


def test_nearest_is_fast():
    nearest("warm up")
    began = time.perf_counter()
    for _ in range(5):
        nearest("how many bytes of memory does one token of the cache need in all layers?")
    assert (time.perf_counter() - began) / 5 < 0.1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no pairs"),
        ("pair = [", "a.toml is not valid TOML"),
        ('[[pair]]\ntopic = "t"\nquestions = "q"\nanswer = "a"\n', "a.toml, pair 1: it must hold"),
        (PAIR.format("?!", "a"), "pair 1: question '\\?!'"),
        (PAIR.format("q", " "), "or its answer is empty"),
        (PAIR.format("What is it?", "a") + PAIR.format("what is IT", "b"), "another answer"),
    ],
)
def test_faults_in_the_corpus_are_named(tmp_path, text, message):
    write(tmp_path, text)
    with pytest.raises(ValueError, match=message):
        load_pairs(tmp_path)


def test_the_same_question_twice_with_one_answer_is_one_pair(tmp_path):
    write(tmp_path, PAIR.format("What is it?", "a") + PAIR.format("what is it", "a"))
    assert load_pairs(tmp_path) == [Pair("What is it?", "a", "t")]


def test_only_answer_and_end_are_targets():
    examples = [encode("Q?", "yes"), encode("A longer question?", "no")]
    batch = collate(examples)
    answers = [[*b"yes", END], [*b"no", END]]
    assert batch.targets.tolist() == answers[0] + answers[1]
    length = len(batch.token_ids) // 2
    for row, target in zip(batch.rows.tolist(), batch.targets.tolist(), strict=True):
        example, at = divmod(row, length)
        assert examples[example].token_ids[at + 1] == target
        assert batch.positions[row] == at


def test_margins():
    logits = torch.tensor([[1.0, 4.0, 2.5], [0.0, 0.0, 3.0]])
    assert margins(logits, torch.tensor([1, 0])).tolist() == [1.5, -3.0]


def test_every_epoch_holds_every_pair_once_and_a_seed_repeats_it():
    some = [Pair(f"Question {i}?", chr(65 + i) * (i + 1), "t") for i in range(10)]
    dealt, again = (epochs(some, 4, 0.5, seed=3) for _ in range(2))
    orders = []
    for _ in range(2):
        batches = [next(dealt) for _ in range(3)]
        assert all(torch.equal(batch.token_ids, next(again).token_ids) for batch in batches)
        answers = [t for batch in batches for t in batch.targets.tolist() if t != END]
        assert sorted(answers) == [65 + i for i in range(10) for _ in range(i + 1)]
        orders.append(answers)
    assert orders[0] != orders[1]


def test_careless_questions_are_still_known():
    rng = random.Random(0)
    forms = {careless("What is a KV cache?", rng) for _ in range(50)}
    assert "what is a kv cache" in forms and len(forms) == 4


TINY = "".join(
    PAIR.format(question, answer)
    for question, answer in [
        ("What is a block?", "A fixed run of slots."),
        ("What is a slot?", "Room for one token."),
        ("什么是块？", "固定大小。"),
    ]
)


def test_a_short_training_run_reaches_exactness_and_transformers_agrees(tmp_path, capsys):
    write(tmp_path, TINY)
    out = tmp_path / "weights"
    code = train.main(
        ["--corpus", str(tmp_path), "--out", str(out), "--steps", "90", "--seed", "1"]
    )
    printed = capsys.readouterr().out
    assert code == 0, printed
    assert "3 of 3 pairs exact" in printed
    theirs = transformers.LlamaForCausalLM.from_pretrained(out, dtype=torch.float32)
    assert theirs.config.eos_token_id == END
    tokenizer = TutorTokenizer()
    for pair in load_pairs(tmp_path):
        prompt = torch.tensor([tokenizer.prompt_ids(pair.question)])
        ids = theirs.generate(prompt, max_new_tokens=60, do_sample=False)[0, prompt.shape[1] :]
        assert tokenizer.decode_bytes(ids.tolist()).decode() == pair.answer
        assert ids[-1] == END
    report = verify(load_llama(out, torch.float32), [Pair("What is a slot?", "Wrong.", "t")])
    assert len(report.wrong) == 1 and report.smallest_margin < 0


def test_a_run_that_does_not_reach_exactness_fails(tmp_path, capsys):
    write(tmp_path, TINY)
    argv = ["--corpus", str(tmp_path), "--out", str(tmp_path / "w"), "--steps", "2"]
    assert train.main(argv) == 1
    assert "not exact: 'What is a block?'" in capsys.readouterr().out


def test_the_same_seed_gives_the_same_weights(tmp_path):
    write(tmp_path, TINY)
    for name in ("one", "two"):
        train.main(["--corpus", str(tmp_path), "--out", str(tmp_path / name), "--steps", "4"])
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two
    assert json.loads((tmp_path / "one" / "config.json").read_text())["dtype"] == "float16"


def test_minutes_report_writes_nothing(tmp_path, capsys, monkeypatch):
    write(tmp_path, TINY)
    monkeypatch.setattr(train.report_minutes, "__defaults__", (2,))
    out = tmp_path / "none"
    assert train.main(["--corpus", str(tmp_path), "--out", str(out), "--minutes-report"]) == 0
    assert "s per step" in capsys.readouterr().out and not out.exists()


def test_an_exchange_too_long_for_the_model_is_refused(tmp_path):
    write(tmp_path, PAIR.format("Q?", "a" * 1000))
    with pytest.raises(ValueError, match="'Q\\?' and its answer take"):
        train.main(["--corpus", str(tmp_path), "--out", str(tmp_path / "w"), "--steps", "1"])


def test_the_corpus_is_found_beside_the_module():
    assert corpus.FOLDER.is_dir() and len(pairs()) > 100


def test_the_shipped_weights_give_every_fifth_answer():
    model = load_llama(train.WEIGHTS, torch.float32)
    report = verify(model, pairs()[::5])
    assert report.wrong == [] and report.smallest_margin >= 4


@pytest.mark.slow
def test_the_shipped_weights_give_every_answer_and_nearly_all_to_careless_questions():
    model = load_llama(train.WEIGHTS, torch.float32)
    report = verify(model, pairs())
    assert report.wrong == [] and report.smallest_margin >= 4
    hurried = [pair._replace(question=pair.question.lower().rstrip("?？")) for pair in pairs()]
    assert len(verify(model, hurried).wrong) <= len(hurried) * 3 // 100
