"""All-reduces of 4 bytes by Gloo between two processes, for `lockstep bench collectives` (LOCKSTEP_TORCH_PYTHON)."""
import contender


def make(rank):
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    value = torch.ones(1)

    def work():
        dist.all_reduce(value)

    return work


contender.run(make, ranks=2)
