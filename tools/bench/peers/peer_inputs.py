"""What all contenders of `lockstep bench peers` begin with: initial parameters and batches, written by Lockstep."""
import json
import sys


class Inputs:
    """`file`: a safetensors file of parameters and "tokens" [batches, rows, length + 1]."""

    def __init__(self, file):
        from safetensors.torch import load_file

        self.parameters = load_file(file)
        self.tokens = self.parameters.pop("tokens")

    def batch(self, step, rank=0, parts=1):
        """Inputs and labels of a step (from 0); of a rank of several `parts` its rows."""
        rows = self.tokens[step % len(self.tokens)].chunk(parts)[rank % parts]
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def fill(model, parameters, is_stage=False):
    """Copies them into a model, sharded or not, whose parameters and buffers have the same names; a pipeline's stage has
    some."""
    import torch
    from torch.distributed.tensor import DTensor, distribute_tensor

    left = dict(parameters)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            whole = left.pop(name)
            if isinstance(parameter, DTensor):
                whole = distribute_tensor(whole.to(parameter.device), parameter.device_mesh, parameter.placements)
            parameter.copy_(whole)
        for name, buffer in model.named_buffers():
            if name in left:
                buffer.copy_(left.pop(name))
    if left and not is_stage:
        raise ValueError(f"the model has no {', '.join(sorted(left))}")


def options():
    """{"mode": one, fsdp, ddp, tp, pp, cp, experts_one or experts; "file", "length", "rows", "device", "compile", "learning_rate"}"""
    return json.loads(sys.argv[1])
