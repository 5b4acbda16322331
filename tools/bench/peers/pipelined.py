"""The pipeline of pytorch_llama.py: two stages of torch.distributed.pipelining, 1F1B, microbatches of one sequence."""


def halve(model, rank):
    """Leaves the model this rank's stage: three blocks of six, as torchtitan and Lockstep cut it."""
    from torch import nn

    middle = len(model.layers) // 2
    if rank == 0:
        model.layers, model.norm, model.output = model.layers[:middle], nn.Identity(), nn.Identity()
    else:
        model.layers, model.tok_embeddings = model.layers[middle:], nn.Identity()


def batch(model, rank, rows):
    """Cuts the model; what makes the gradients of a batch, and returns its mean loss on both ranks."""
    import torch
    from torch.distributed import pipelining
    from torch.nn import functional as F

    def mean_loss(logits, labels):
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

    halve(model, rank)
    stage = pipelining.PipelineStage(model, rank, 2, torch.device("cpu"))
    schedule = pipelining.Schedule1F1B(stage, rows, mean_loss)

    def run(tokens, labels):
        losses = []
        if rank == 0:
            schedule.step(tokens, return_outputs=False)
        else:
            schedule.step(target=labels, losses=losses, return_outputs=False)
        loss = torch.stack(losses).mean() if losses else torch.zeros(())
        torch.distributed.all_reduce(loss)
        return loss

    return run


def clip(parameters, most):
    """torch.nn.utils.clip_grad_norm_ by the norm of both stages."""
    import torch
    from torch.nn import utils

    parameters = list(parameters)
    square = utils.get_total_norm([parameter.grad for parameter in parameters]) ** 2
    torch.distributed.all_reduce(square)
    utils.clip_grads_with_norm_(parameters, most, square.sqrt())
