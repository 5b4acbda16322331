"""Checkpoints that torchtitan saves, of two ranks of FSDP2 with its optimizer beside, in Lockstep: log-probabilities agree
within 1e-5 with its own model's.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as processes
from safetensors.torch import save_file
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict
from torch.distributed.fsdp import fully_shard
from torchtitan.models.llama3.model.args import RoPEScalingArgs, TransformerModelArgs
from torchtitan.models.llama3.model.model import Transformer

BUILD = pathlib.Path(sys.argv[1]).resolve()
LENGTH = 24
# Rows that two ranks share unevenly.
SIZES = dict(dim=48, n_layers=3, n_heads=6, n_kv_heads=2, vocab_size=61, multiple_of=10, norm_eps=1e-5,
             max_seq_len=64, rope_scaling_args=RoPEScalingArgs(scaling_factor=8.0))
JOB = """[model]
name = "llama3"
width = 48
layers = 3
heads = 6
key_value_heads = 2
hidden = {hidden}
vocabulary = 61
rope_theta = 10000
rope_factor = 8
norm_eps = 1e-5
[training]
seq_len = 24
"""


def model_of_everyone():
    torch.manual_seed(1)
    model = Transformer(TransformerModelArgs(**SIZES))
    with torch.no_grad():
        model.init_weights()
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def rank(number, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK=str(number), WORLD_SIZE="2")
    store = dist.FileStore(folder + "/meeting", 2)
    dist.init_process_group("gloo", store=store, rank=number, world_size=2)
    model = model_of_everyone()
    tokens = torch.randint(0, SIZES["vocab_size"], (2, LENGTH))
    with torch.no_grad():
        logits = model(tokens)
    if number == 0:
        hidden = model.layers["0"].feed_forward.w1.weight.shape[0]
        pathlib.Path(folder, "job.toml").write_text(JOB.format(hidden=hidden))
        pathlib.Path(folder, "expected").mkdir()
        save_file({"tokens": tokens.float(), "logits": logits.contiguous()}, folder + "/expected/model.safetensors")
    mesh = dist.init_device_mesh("cpu", (2,))
    for layer in model.layers.values():
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.param_groups[0]["lr"] = 0.0
    optimizer.step()
    beside = get_optimizer_state_dict(model, optimizer, options=StateDictOptions(flatten_optimizer_state_dict=True))
    state = {**model.state_dict(), "optimizer": beside, "train_state": {"step": torch.tensor(3)}, "lr_scheduler": {"last": 3}}
    dcp.save(state, checkpoint_id=folder + "/saved")
    dist.destroy_process_group()


def run(*words, **variables):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run([str(word) for word in words], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{words} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        processes.spawn(rank, (name,), nprocs=2)
        run(BUILD / "lockstep", "checkpoint", "import", folder / "saved", folder / "model", "--job", folder / "job.toml", "-q")
        said = run(BUILD / "tests" / "test_trainer", "--gtest_filter=HuggingFaceLogits.*", LOCKSTEP_EXPECTED_LOGITS=name)
        assert "[  PASSED  ] 1 test." in said, said
        worst = next(line for line in said.splitlines() if line.startswith("worst"))
        print(f"torchtitan's checkpoint: log-probabilities {worst}")


if __name__ == "__main__":
    main()
