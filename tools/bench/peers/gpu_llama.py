#!/usr/bin/env python3
"""The peer of tools/gpu_check: training steps of Llama 3 in plain PyTorch, random tokens.

usage: gpu_llama.py FLAVOR float32|bfloat16 ROWS LENGTH STEPS eager|compiled|fsdp2 DEVICE

Prints a line of JSON: the median of tokens a second over the last two thirds of the steps, and memory. Each step reads
its loss and gradient norm, clips to norm 1, and ends in fused AdamW. Parameters and optimizer state are float32; bfloat16
computes under autocast, with fsdp2 by its MixedPrecisionPolicy, gradients reduced in float32. fsdp2: every block and the
whole are sharded over the one process there is."""
import contextlib
import json
import os
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

# Width, layers, heads, key-value heads, hidden, vocabulary, whether the head is the embedding's weight.
FLAVORS = {"debugmodel": (256, 6, 16, 16, 768, 2048, False), "1B": (2048, 16, 32, 8, 8192, 128256, True),
           "3B": (3072, 28, 24, 8, 8192, 128256, True), "8B": (4096, 32, 32, 8, 14336, 128256, False)}


def rotations(length, size, device):
    powers = torch.arange(0, size, 2, device=device) / size
    angles = torch.outer(torch.arange(length, device=device), 500000.0 ** -powers)
    return angles.cos().unsqueeze(1), angles.sin().unsqueeze(1)


def rotate(x, table):
    cosines, sines = (part.to(x.dtype) for part in table)
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((a * cosines - b * sines, a * sines + b * cosines), -1).flatten(-2)


class Block(nn.Module):
    def __init__(self, width, heads, groups, hidden):
        super().__init__()
        self.split = [heads, groups, groups]
        self.size = width // heads
        self.norms = nn.ModuleList(nn.RMSNorm(width, eps=1e-5) for _ in range(2))
        self.qkv = nn.Linear(width, sum(self.split) * self.size, bias=False)
        self.out, self.down = nn.Linear(width, width, bias=False), nn.Linear(hidden, width, bias=False)
        self.gate_up = nn.Linear(width, 2 * hidden, bias=False)

    def attention(self, x, table):
        q, k, v = self.qkv(x).unflatten(-1, (-1, self.size)).split(self.split, -2)
        q, k, v = (t.transpose(1, 2) for t in (rotate(q, table), rotate(k, table), v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.split[0] > self.split[1])
        return self.out(mixed.transpose(1, 2).flatten(2))

    def forward(self, x, table):
        x = x + self.attention(self.norms[0](x), table)
        gate, up = self.gate_up(self.norms[1](x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, width, layers, heads, groups, hidden, vocabulary, tied):
        super().__init__()
        self.embedding, self.norm = nn.Embedding(vocabulary, width), nn.RMSNorm(width, eps=1e-5)
        self.blocks = nn.ModuleList(Block(width, heads, groups, hidden) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary, bias=False)
        nn.init.normal_(self.embedding.weight, std=0.02)
        if tied:
            self.head.weight = self.embedding.weight

    def forward(self, tokens, table):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, table)
        return self.head(self.norm(x))


def shard(model, compute, device):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    torch.distributed.init_process_group("nccl" if device == "cuda" else "gloo", rank=0, world_size=1)
    mesh = torch.distributed.device_mesh.init_device_mesh(device, (1,))
    policy = MixedPrecisionPolicy(param_dtype=compute, reduce_dtype=torch.float32)
    for part in [*model.blocks, model]:
        fully_shard(part, mesh=mesh, mp_policy=policy)
    return model


def make_step(model, mode, compute, table, device):
    """One training step on given tokens and labels; what it returns is the loss, once all of it is done."""
    run = torch.compile(model) if mode == "compiled" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    computes_16_bit = mode != "fsdp2" and compute != torch.float32
    cast = (lambda: torch.autocast(device, compute)) if computes_16_bit else contextlib.nullcontext

    def step(tokens, labels):
        with cast():
            logits = run(tokens, table)
        loss = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)
        if device == "cuda":
            torch.cuda.synchronize()
        return loss.item()

    return step


def measure(flavor, compute, rows, length, steps, mode, device):
    shape, compute = FLAVORS[flavor], getattr(torch, compute)
    with torch.device(device):
        model = Llama(*shape)
    if mode == "fsdp2":
        model = shard(model, compute, device)
    step = make_step(model, mode, compute, rotations(length, shape[0] // shape[2], device), device)
    rates = []
    for _ in range(steps):
        tokens, labels = torch.randint(shape[5], (2, rows, length)).to(device)
        start = time.perf_counter()
        loss = step(tokens, labels)
        rates.append(rows * length / (time.perf_counter() - start))
    memory = torch.cuda.max_memory_allocated() if device == "cuda" else 0
    return {"tokens_per_second": statistics.median(rates[steps // 3:]), "memory_gib": memory / 2**30, "loss": loss}


def main():
    flavor, compute, rows, length, steps, mode, device = sys.argv[1:]
    torch.manual_seed(1)
    print(json.dumps(measure(flavor, compute, int(rows), int(length), int(steps), mode, device)))
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
