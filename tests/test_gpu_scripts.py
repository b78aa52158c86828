"""The two GPU scripts, tried without a GPU: a dry run, a planted fault, stand-ins."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from minipaged.kernels.configs import KernelConfig

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
DRY = "dry run: no figure here means anything"

# looked for, not imported: this process may not have Triton in either mode
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton has wheels for Linux only"
)


def python(*args: object, interpret: str | None = None) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    env |= {"PYTHONPATH": f"{ROOT}{os.pathsep}{BENCHMARKS}", "OMP_NUM_THREADS": "1"}
    env |= {"TRITON_INTERPRET": interpret} if interpret else {}
    words = [sys.executable, *map(str, args)]
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=180)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize("script", ["gpu_kernels.py", "gpu_engine.py"])
def test_without_a_gpu_one_line_and_exit_code_2(script):
    done = python(BENCHMARKS / script)
    assert done.returncode == 2
    assert done.stdout.count("\n") == 1
    assert "no GPU" in done.stdout and "--dry" in done.stdout
    assert not done.stderr


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    file = tmp_path_factory.mktemp("dry") / "kernels.json"
    done = python(BENCHMARKS / "gpu_kernels.py", "--dry", "--json", file)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    told = json.loads(file.read_text(encoding="utf-8"))
    return done.stdout, told, {one["name"]: one for one in told["sections"]}


@needs_triton
def test_a_dry_run_goes_through_every_section_and_says_that_it_is_dry(kernels):
    printed, told, sections = kernels
    assert list(sections) == [
        "correctness", "bandwidth", "decode", "layouts", "splits", "variants", "rivals"
    ]  # fmt: skip
    assert printed.count(DRY) == 1 + len(sections)
    assert told["dry"] is True
    left_out = [line for one in told["sections"] for line in one["left_out"]]
    assert left_out == []
    for one in told["sections"]:
        assert one["rows"] and one["title"] in printed


@needs_triton
def test_every_kernel_is_checked_in_every_dtype_and_layout(kernels):
    _, told, sections = kernels
    rows = sections["correctness"]["rows"]
    assert {row["verdict"] for row in rows} == {"ok"} and told["wrong"] == 0
    both = ["decode, one piece", "decode, auto", "decode, fixed split", "chunks and decodes",
            "backend, fixed split", "row alone and in a batch", "store"]  # fmt: skip
    seen = {(row["kernel"], row["dtype"], row["K layout"]) for row in rows}
    for dtype in ("bfloat16", "float16", "float32"):
        for layout in ("NHD", "packed"):
            assert {(name, dtype, layout) for name in both} <= seen
        assert {("copy", dtype, "NHD"), ("move", dtype, "NHD")} <= seen
    assert {"merge of empty pieces", "pool beyond 2^31 numbers"} <= {row["kernel"] for row in rows}
    for row in rows:
        assert row["error"] <= row["tolerance"]
        rounded = row["kernel"].startswith(("decode", "chunks", "backend", "pool"))
        assert (row["error"] > 0) == rounded  # an error of 0 there would mean nothing was compared


@needs_triton
def test_the_tables_of_times_have_their_rows(kernels):
    _, _, sections = kernels
    decode = sections["decode"]["rows"]
    names = {"minipaged triton", "SDPA, contiguous", "minipaged torch"}
    assert {(r["batch"], r["context"], r["backend"]) for r in decode} == {
        (b, c, name) for b in (1, 2) for c in (16, 128) for name in names
    }
    for row in decode:
        best = row["graph us"] or row["eager us"]
        assert row["GB/s"] == pytest.approx(row["MB"] / best * 1e3)
        copy = sections["bandwidth"]["rows"][0]["GB/s"]
        assert row["of copy"] == pytest.approx(row["GB/s"] / copy)
    layouts = {(r["block size"], r["K layout"]) for r in sections["layouts"]["rows"]}
    assert layouts == {(b, k) for b in (8, 16, 32, 64, 128) for k in ("NHD", "packed")}
    splits = sections["splits"]["rows"]
    assert max(row["pieces"] for row in splits) > 1
    for context in {row["context"] for row in splits}:
        rows = [row for row in splits if row["context"] == context]
        assert sum(bool(row["rule"]) for row in rows) == 1
        assert min(row["time / fastest"] for row in rows) == 1


@needs_triton
def test_the_printed_tables_of_variants_can_be_put_into_configs(kernels):
    from minipaged.kernels import configs

    printed, _, sections = kernels
    text = sections["variants"]["text"]
    assert text in printed
    tables = [part.split(":\n", 1) for part in text.split("\n\n")]
    for (title, source), name in zip(tables, ["_DECODE"] * 2 + ["_PREFILL"] * 2, strict=True):
        scope: dict = {"KernelConfig": KernelConfig}
        exec(source, scope)
        shipped = getattr(configs, name)
        assert scope[name] == shipped if title == "shipped" else set(scope[name]) == set(shipped)
    assert len(sections["variants"]["rows"]) == len(configs._DECODE) + len(configs._PREFILL)
    assert all(row["measured"] >= 3 for row in sections["variants"]["rows"])


FAULT = """
import sys
import triton
import triton.language as tl

sys.argv = ["gpu_kernels.py", "--dry", "--only", "correctness", "--shape", "2/1/16"]
sys.path.insert(0, {benchmarks!r})
import gpu_kernels
from minipaged.kernels import triton_decode


@triton.jit
def finish(m, total, acc):
    return acc, m * 0.6931471805599453  # nobody divides by the sum of the weights


triton_decode.finish = finish
sys.exit(gpu_kernels.main())
"""


@needs_triton
def test_a_wrong_kernel_is_reported_and_exits_1(tmp_path):
    script = tmp_path / "fault.py"
    script.write_text(FAULT.format(benchmarks=str(BENCHMARKS)), encoding="utf-8")
    done = python(script, interpret="1")
    assert done.returncode == 1, done.stdout[-3000:] + done.stderr[-3000:]
    wrong = [line for line in done.stdout.splitlines() if "WRONG" in line]
    reads = ("decode,", "backend,", "pool")  # the chunks have a kernel of their own
    assert wrong and all(any(name in line for name in reads) for line in wrong)
    assert f"{len(wrong)} wrong of" in done.stdout
    assert any("store" in line and "ok" in line for line in done.stdout.splitlines())


@needs_triton
def test_a_section_that_does_not_exist_is_refused_in_one_line():
    done = python(BENCHMARKS / "gpu_kernels.py", "--dry", "--only", "corectness")
    assert (done.returncode, done.stdout.count("\n")) == (2, 1)
    assert "--only names ['corectness']" in done.stdout


# what needs packages that are not here: with stand-ins that take their parameters

RIVALS = """
import sys, types
import torch
from gpu_bench import rivals, sizes
from gpu_bench.batches import Pools
from gpu_bench.clocks import WallClock
from gpu_bench.figures import Heads
from gpu_bench.report import Section
from gpu_bench.speed import Bench
from minipaged.kernels.meta import AttentionMeta
from minipaged.kernels.reference import paged_attention


class BatchDecodeWithPagedKVCacheWrapper:
    def __init__(self, float_workspace_buffer, kv_layout="NHD", use_cuda_graph=False,
                 use_tensor_cores=False):
        assert kv_layout == "NHD" and not float_workspace_buffer.any()

    def plan(self, indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size,
             pos_encoding_mode="NONE", window_left=-1, logits_soft_cap=None,
             q_data_type="float16", kv_data_type=None):
        assert {t.dtype for t in (indptr, indices, last_page_len)} == {torch.int32}
        assert (num_qo_heads, num_kv_heads, head_dim) == (4, 2, 32)
        pages = indptr.diff()
        self.lens = (pages - 1) * page_size + last_page_len
        self.table = indices.view(len(pages), -1)

    def run(self, q, paged_kv_cache):
        starts = torch.arange(len(q) + 1)
        return paged_attention(q, *paged_kv_cache,
                               AttentionMeta(starts, self.lens.long(), self.table.long()))


def unified_attention(q, k, v, out, cu_seqlens_q, max_seqlen_q, seqused_k, max_seqlen_k,
                      softmax_scale, causal, window_size, block_table, softcap,
                      q_descale, k_descale, v_descale, seq_threshold_3D=None,
                      num_par_softmax_segments=None, softmax_segm_output=None,
                      softmax_segm_max=None, softmax_segm_expsum=None, alibi_slopes=None):
    assert {t.dtype for t in (cu_seqlens_q, seqused_k, block_table)} == {torch.int32}
    assert (max_seqlen_q, causal) == (1, True) and abs(softmax_scale - 32**-0.5) < 1e-12
    assert int(seqused_k.max()) == max_seqlen_k and softmax_segm_output.shape == (64, 4, 16, 32)
    wrong = 2 if max_seqlen_k == 128 else 1
    out.copy_(wrong * paged_attention(q, k, v, AttentionMeta(
        cu_seqlens_q.long(), seqused_k.long(), block_table.long())))


def module(name, **content):
    made = types.ModuleType(name)
    vars(made).update(content)
    sys.modules[name] = made


module("flashinfer", BatchDecodeWithPagedKVCacheWrapper=BatchDecodeWithPagedKVCacheWrapper)
for name in ("vllm", "vllm.v1", "vllm.v1.attention", "vllm.v1.attention.ops"):
    module(name)
module("vllm.v1.attention.ops.triton_unified_attention", unified_attention=unified_attention)
rivals.version_of = lambda package: "1.0"
device = torch.device("cpu")
size, pools = sizes.dry(Heads(4, 2, 32)), Pools(device, 0)
bench = Bench(size, device, torch.bfloat16, 16, WallClock(), pools, 1.0)
section = Section("rivals", "", "")
rivals.fill(bench, section)
for row in section.rows:
    print("row", row["backend"], row["batch"], row["context"])
for line in section.left_out:
    print("left out", line)
"""


@needs_triton
def test_other_peoples_kernels_are_called_as_they_ask_and_checked(tmp_path):
    """The second stand-in is wrong where the context is 128: that is told, and not timed."""
    script = tmp_path / "rivals.py"
    script.write_text(RIVALS, encoding="utf-8")
    done = python(script, interpret="1")
    lines = done.stdout.splitlines()
    rows = {line for line in lines if line.startswith("row") and "minipaged" not in line}
    assert rows == {
        *(f"row FlashInfer {b} {c}" for b in (1, 2) for c in (16, 128)),
        *(f"row vLLM unified attention {b} 16" for b in (1, 2)),
    }, done.stdout + done.stderr
    left_out = [line for line in lines if line.startswith("left out")]
    assert len(left_out) == 2
    assert all("x 128: differs from ours" in line for line in left_out)


AHEAD = """
import torch, triton
from torch.utils._python_dispatch import TorchDispatchMode
from triton.backends.compiler import GPUTarget


class NoCard:
    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0


triton.runtime.driver.set_active(NoCard())
from functools import partial
from gpu_bench.ahead import compile_ahead
from gpu_bench.batches import decode_meta
from minipaged.kernels import triton_attention
from minipaged.kernels.configs import KernelConfig

kernel = triton_attention.decode_kernel
q = torch.zeros(1, 4, 64, dtype=torch.bfloat16)
pool = torch.zeros(4, 16, 2, 64, dtype=torch.bfloat16)
meta = decode_meta([64], torch.arange(4)[None])
configs = [KernelConfig(tile=tile, num_warps=4, num_stages=2) for tile in (16, 32)]
decode = partial(triton_attention.paged_decode, q, pool, pool, meta)


class Ops(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


with Ops() as launching:
    compile_ahead(partial(decode, config=config) for config in configs)
with Ops() as asking:
    int(meta.query_start_loc.diff().max())
WAIT = {"_local_scalar_dense", "nonzero", "_to_copy", "masked_select"}
assert launching.seen and not launching.seen & WAIT, launching.seen
assert asking.seen & WAIT  # what waiting for the device looks like
assert triton_attention.decode_kernel is kernel
made = list(kernel.device_caches[0][0].values())
print(sorted(type(one).__name__ for one in made), all("cubin" in one.asm for one in made))
"""


@needs_triton
def test_variants_are_compiled_ahead_without_being_launched(tmp_path):
    """And paged_decode asks the device for nothing on its way: a CUDA graph can be made of it."""
    script = tmp_path / "ahead.py"
    script.write_text(AHEAD, encoding="utf-8")
    done = python(script)
    assert done.stdout == "['CompiledKernel', 'CompiledKernel'] True\n", done.stdout + done.stderr


@needs_triton
def test_the_engine_script_in_a_dry_run(tmp_path):
    pytest.importorskip("tokenizers")
    file = tmp_path / "engine.json"
    done = python(BENCHMARKS / "gpu_engine.py", "--dry", "--json", file)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    told = json.loads(file.read_text(encoding="utf-8"))
    assert done.stdout.count(DRY) == 2
    assert "random weights" in told["model"]
    (section,) = told["sections"]
    rows = {row["engine"]: row for row in section["rows"]}
    assert list(rows)[:3] == ["transformers generate", "minipaged, triton", "minipaged, torch"]
    assert not [line for line in section["left_out"] if "minipaged" in line]
    first = rows["transformers generate"]["tokens / s"]
    for row in rows.values():
        assert row["tokens / s"] == pytest.approx(row["tokens"] / row["seconds"])
        assert row["ratio"] == pytest.approx(row["tokens / s"] / first)
        assert (row["verdict"], row["largest gap"]) == ("ok", pytest.approx(0, abs=1e-3))
    assert {rows[name]["same tokens"] for name in list(rows)[1:3]} == {"4 of 4"}
    assert len({row["tokens"] for row in rows.values()}) == 1
