"""Steps of the Llama debugmodel by PyTorch's FSDP2 over Gloo in two processes of one thread each, for `lockstep bench
processes` (LOCKSTEP_TORCH_PYTHON).

usage: fsdp2_llama.py ROWS LENGTH       ROWS are those of both processes

Every block is gathered and reduced by itself, as torchtitan does; else as plain_llama.py."""
import sys

import two_ranks


def make(rank):
    import torch
    from torch import nn
    from torch.distributed.fsdp import fully_shard
    from torch.nn import functional as F

    import plain_llama

    rows, length = int(sys.argv[1]) // 2, int(sys.argv[2])
    model, table = plain_llama.Llama(), plain_llama.rotations(length, plain_llama.WIDTH // plain_llama.HEADS)
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    places = torch.arange(rows * length) + rank * rows * length
    tokens, labels = ((places + shift) * 7919 % plain_llama.VOCABULARY for shift in (0, 1))

    def step():
        logits = model(tokens.view(rows, length), table)
        F.cross_entropy(logits.view(-1, plain_llama.VOCABULARY), labels).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


two_ranks.run(make)
