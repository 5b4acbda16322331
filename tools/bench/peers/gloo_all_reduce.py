"""All-reduces of 4 bytes by Gloo between two processes, for `lockstep bench collectives` (LOCKSTEP_TORCH_PYTHON)."""
import two_ranks


def make(rank):
    import torch
    import torch.distributed as dist

    value = torch.ones(1)
    return lambda: dist.all_reduce(value)


two_ranks.run(make)
