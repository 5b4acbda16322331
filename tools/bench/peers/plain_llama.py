#!/usr/bin/env python3
"""The peer of `lockstep bench numerics` in plain PyTorch: steps of the Llama debugmodel, fp32, one thread, median of many.

usage: OMP_NUM_THREADS=1 plain_llama.py [SECONDS]

Needs PyTorch 2.11 with its Python dependencies, which Lockstep itself does without. Prints one line per size:
step_512_tokens MILLISECONDS. Forward, backward, clipping to norm 1, fused AdamW, eager, as tools/bench/peers/plain_llama.h.
"""
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, LAYERS, HEADS, HIDDEN, VOCABULARY = 256, 6, 16, 768, 2048


def rotations(length, size):
    angles = torch.outer(torch.arange(length), 500000.0 ** -(torch.arange(0, size, 2) / size))
    return torch.polar(torch.ones_like(angles), angles).view(length, 1, -1)


def rotate(x, table):
    return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * table).flatten(-2)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(WIDTH, eps=1e-5) for _ in range(2))
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate_up, self.down = nn.Linear(WIDTH, 2 * HIDDEN, bias=False), nn.Linear(HIDDEN, WIDTH, bias=False)

    def attention(self, x, table):
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).unbind(2)
        q, k, v = (t.transpose(1, 2) for t in (rotate(q, table), rotate(k, table), v))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))

    def forward(self, x, table):
        x = x + self.attention(self.norms[0](x), table)
        gate, up = self.gate_up(self.norms[1](x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.norm = nn.Embedding(VOCABULARY, WIDTH), nn.RMSNorm(WIDTH, eps=1e-5)
        self.blocks, self.head = nn.ModuleList(Block() for _ in range(LAYERS)), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens, table):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, table)
        return self.head(self.norm(x))


def measure(rows, length, seconds):
    model, table = Llama(), rotations(length, WIDTH // HEADS)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    places = torch.arange(rows * length)
    tokens, labels = ((places + shift) * 7919 % VOCABULARY for shift in (0, 1))
    times = []
    while len(times) < 7 or sum(times) < seconds:
        start = time.perf_counter()
        logits = model(tokens.view(rows, length), table)
        F.cross_entropy(logits.view(-1, VOCABULARY), labels).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.perf_counter() - start)
    print(f"step_{rows * length}_tokens {statistics.median(times[2:]) * 1e3:.1f}", flush=True)


def main():
    torch.set_num_threads(1)
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    measure(2, 256, seconds)
    measure(8, 512, seconds)


if __name__ == "__main__":
    main()
