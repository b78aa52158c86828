"""The command line as a user meets it: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

import minipaged
from minipaged.config import EngineConfig


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "minipaged.cli", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        **options,
    )


def call(monkeypatch, capsys, *arguments):
    """The same inside this process: exit code, stdout, stderr."""
    from minipaged import cli

    monkeypatch.setattr(sys, "argv", ["minipaged", *arguments])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    return exit_.value.code, *capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["generate"], "Missing argument"),
        (["nonsense"], "No such command 'nonsense'"),
        (["generate", "x", "--temprature", "1"], "No such option"),
        (["generate", "x", "--temperature", "hot"], "'--temperature'"),
        (["generate", "x", "--temperature", "-1"], "temperature is -1.0"),
        (["generate", "x", "--max-tokens", "0"], "max_tokens is 0"),
        (["generate", "x", "--model", "nowhere"], "no model 'nowhere'"),
        (["generate", ""], "the prompt is empty"),
        (["generate", "  "], "the prompt is empty"),
        (["generate", "\udce4"], "set the locale to UTF-8"),
        (["generate", "x", "--seed", "-1"], "seed is -1"),
        (["generate", "x", "--attention-backend", "x"], "choose one of torch, triton"),
        (["demo", "x", "--num-blocks", "0"], "num_blocks is 0"),
        (["demo", "--scenario", "nonsense"], "choose one of mixed, prefix, fork, beam"),
        (["demo", "x", "--max-tokens", "0"], "max_tokens is 0"),
        (["demo", "x", "--delay", "-1"], "delay is -1"),
        (["demo", "x", "--record", "picture.png"], "picture.png"),
        (["generate", "x" * 3000], "max_model_len is 1024"),
        (["bench", "scheduler", "--requests", "0"], "requests is 0"),
        (["bench", "scheduler", "--prompt-len", "9", "3"], "HI may not be below LO"),
        (["bench", "scheduler", "--num-blocks", "2"], "the whole pool has 32"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(monkeypatch, capsys, arguments, words):
    code, out, err = call(monkeypatch, capsys, *arguments)
    assert code == 2
    assert out == ""
    assert words in err
    assert err.count("\n") == 1 and err.startswith("minipaged: ")


@pytest.mark.parametrize(
    "command",
    [
        *("generate", "demo", "doctor", "bench scheduler"),
        *("init", "check", "hint", "solution", "next", "reset", "mine", "lab", "grade"),
    ],
)
def test_every_command_helps_with_an_example(monkeypatch, capsys, command):
    code, out, _ = call(monkeypatch, capsys, *command.split(), "--help")
    assert code == 0
    assert f"Example: minipaged {command}" in " ".join(out.split())


def test_version(monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, "--version")
    assert (code, out) == (0, f"minipaged {minipaged.__version__}\n")


def test_no_command_outside_a_workspace_shows_the_help_and_how_to_begin(
    monkeypatch, capsys, tmp_path
):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(monkeypatch, capsys)
    assert code == 0 and err == ""
    assert "generate" in out and "demo" in out
    assert out.splitlines()[-1].endswith("minipaged init DIR")


def test_generate_writes_the_answer():
    done = run("generate", "What is a block table?")
    assert done.returncode == 0, done.stderr
    assert "physical block" in done.stdout
    assert done.stderr == ""


def test_generate_names_near_questions_for_one_it_does_not_know(monkeypatch, capsys):
    code, out, err = call(monkeypatch, capsys, "generate", "block table, how does it work exactly")
    assert code == 0 and out.strip()
    assert "was not trained on this question" in err
    assert "block table" in err


def test_generate_json(monkeypatch, capsys):
    arguments = ("generate", "什么是块表？", "--json", "--temperature", "0.5", "--seed", "3")
    code, out, _ = call(monkeypatch, capsys, *arguments)
    assert code == 0
    data = json.loads(out)
    assert data["finish_reason"] == "stop"
    assert data["text"].encode() == bytes(data["token_ids"][:-1])
    assert call(monkeypatch, capsys, *arguments)[1].split('"time')[0] == out.split('"time')[0]


def test_bench_prints_one_json_line(monkeypatch, capsys):
    code, out, _ = call(
        monkeypatch, capsys, "bench", "scheduler", "--requests", "20", "--arrival-rate", "0.5"
    )
    assert code == 0
    data = json.loads(out)
    assert out.count("\n") == 1
    assert {"steps", "steps_hash", "us_per_step", "us_per_seq", "us_per_token"} <= set(data)


def test_doctor_answers(monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, "doctor")
    assert code == 0
    assert "All is well." in out
    assert "weights" in out and "physical block" in out


def test_a_terminal_without_chinese_is_no_error():
    done = subprocess.run(
        [sys.executable, "-m", "minipaged.cli", "generate", "什么是块表？"],
        capture_output=True,
        env={"PYTHONIOENCODING": "cp1252", "PATH": ""},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert b"?" in done.stdout


@pytest.mark.parametrize("name", ["prefix", "fork", "beam"])
def test_every_scenario_of_the_demo_runs(monkeypatch, capsys, name):
    code, out, _ = call(
        monkeypatch, capsys, "demo", "--plain", "--scenario", name, "--max-tokens", "30"
    )
    assert code == 0
    words = {"prefix": r"\d+ from the cache", "fork": "branches off", "beam": r"-\d\.\d{4}  "}[name]
    assert re.search(words, out)


def test_what_is_given_comes_before_the_scenarios_own(monkeypatch, capsys):
    code, out, _ = call(
        monkeypatch,
        capsys,
        *("demo", "--plain", "--scenario", "prefix", "--max-tokens", "20"),
        *("--enable-prefix-caching", "off"),
    )
    assert code == 0
    assert "from the cache" not in out


def test_the_demos_defaults_are_those_that_its_picture_was_chosen_for():
    from minipaged.viz.scenarios import DEFAULT_OPTIONS, SCENARIOS

    assert SCENARIOS["mixed"].configs(block_size=None) == {"": EngineConfig.of(**DEFAULT_OPTIONS)}
    assert SCENARIOS["prefix"].configs(max_num_seqs=9)[""].scheduler.max_num_seqs == 9
