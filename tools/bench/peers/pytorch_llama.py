"""Steps of the Llama 3 debugmodel in plain PyTorch, alone or by DDP, FSDP2, tensor, pipeline or context parallelism, for
`lockstep bench peers`.

usage: pytorch_llama.py JSON       peer_inputs.options() says of what

Linear layers are those of the reference model (github.com/meta-llama/llama3), which torchtitan trains, too. Fully sharded,
every block is gathered by itself; tensor parallelism is torchtitan's: sequence parallel norms, a loss on sharded logits. A
pipeline is torch.distributed.pipelining's 1F1B over two halves; contexts are torch.distributed.tensor's ring attention, and
gradients DDP's."""
import contextlib
import itertools
import math

import contender
import peer_inputs
import pipelined
import ring_attention

OPTIONS = peer_inputs.options()
WIDTH, LAYERS, HEADS, HIDDEN, VOCABULARY, EPSILON = 256, 6, 16, 768, 2048, 1e-5


def rotations(length):
    """cos + i sin by position and pair; slow rotations are stretched as in Llama 3.1 (factor 8, from 8192 / 4 on)."""
    import torch

    frequencies = 500000.0 ** -(torch.arange(0, WIDTH // HEADS, 2).float() / (WIDTH // HEADS))
    turns = 8192 * frequencies / (2 * math.pi)
    kept = ((turns - 1) / (4 - 1)).clamp(0, 1)
    frequencies = kept * frequencies + (1 - kept) * frequencies / 8
    angles = torch.outer(torch.arange(length).float(), frequencies)
    return torch.polar(torch.ones_like(angles), angles)


def define():
    import torch
    from torch import nn
    from torch.nn import functional as F

    def rotate(x, table):
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * table[None, :, None]).flatten(-2)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.wq, self.wk, self.wv, self.wo = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

        def forward(self, x, table):
            q, k, v = (layer(x).unflatten(-1, (-1, WIDTH // HEADS)) for layer in (self.wq, self.wk, self.wv))
            q, k, v = (t.transpose(1, 2) for t in (rotate(q, table), rotate(k, table), v))
            return self.wo(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))

    class FeedForward(nn.Module):
        def __init__(self):
            super().__init__()
            self.w1, self.w3 = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
            self.w2 = nn.Linear(HIDDEN, WIDTH, bias=False)

        def forward(self, x):
            return self.w2(F.silu(self.w1(x)) * self.w3(x))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.feed_forward = Attention(), FeedForward()
            self.attention_norm, self.ffn_norm = (nn.RMSNorm(WIDTH, eps=EPSILON) for _ in range(2))

        def forward(self, x, table):
            x = x + self.attention(self.attention_norm(x), table)
            return x + self.feed_forward(self.ffn_norm(x))

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.tok_embeddings, self.norm = nn.Embedding(VOCABULARY, WIDTH), nn.RMSNorm(WIDTH, eps=EPSILON)
            self.layers = nn.ModuleList(Block() for _ in range(LAYERS))
            self.output = nn.Linear(WIDTH, VOCABULARY, bias=False)
            self.register_buffer("table", rotations(OPTIONS["length"]), persistent=False)

        def forward(self, tokens):
            x = self.tok_embeddings(tokens)
            for layer in self.layers:
                x = layer(x, self.table)
            return self.output(self.norm(x))

    return Llama()


def fully_sharded(model, mesh):
    from torch.distributed.fsdp import fully_shard

    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def tensor_parallel(model, mesh):
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor import parallel as tp

    rows = Shard(1)
    tp.parallelize_module(model, mesh, {
        "tok_embeddings": tp.RowwiseParallel(input_layouts=Replicate(), output_layouts=rows),
        "norm": tp.SequenceParallel(),
        "output": tp.ColwiseParallel(input_layouts=rows, output_layouts=Shard(-1), use_local_output=False)})
    whole = {"input_layouts": (rows, None), "desired_input_layouts": (Replicate(), None)}
    for layer in model.layers:
        plan = {"attention_norm": tp.SequenceParallel(), "ffn_norm": tp.SequenceParallel(),
                "attention": tp.PrepareModuleInput(**whole),
                "feed_forward": tp.PrepareModuleInput(input_layouts=(rows,), desired_input_layouts=(Replicate(),)),
                "attention.wo": tp.RowwiseParallel(output_layouts=rows),
                "feed_forward.w2": tp.RowwiseParallel(output_layouts=rows)}
        columns = ("attention.wq", "attention.wk", "attention.wv", "feed_forward.w1", "feed_forward.w3")
        plan.update({name: tp.ColwiseParallel() for name in columns})
        tp.parallelize_module(layer, mesh, plan)
    return model


def context_parallel(mesh, table):
    """In this context a rank has its parts of a batch's sequences, and attention sees the others'."""
    from torch.distributed.tensor.experimental import context_parallel

    ring_attention.on_cpu()
    return lambda tokens, labels: context_parallel(mesh, buffers=[tokens, labels, table], buffer_seq_dims=[1, 1, 0],
                                                   no_restore_buffers={tokens, labels})


def no_context(tokens, labels):
    return contextlib.nullcontext()


def parallel(model, mode):
    """The model on all ranks, and the context of a batch's loss."""
    import torch

    if mode in ("one", "pp"):
        return model, no_context
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
    if mode == "fsdp":
        return fully_sharded(model, mesh), no_context
    if mode == "tp":
        from torch.distributed.tensor.parallel import loss_parallel

        return tensor_parallel(model, mesh), lambda tokens, labels: loss_parallel()
    if mode == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model), no_context
    # A rank has its part of the table of rotations, which DDP would overwrite with rank 0's.
    replicas = torch.nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)
    return replicas, context_parallel(mesh, model.table)


def whole_batch(model, context):
    """What makes the gradients of a batch, and returns its mean loss."""
    import torch
    from torch.nn import functional as F

    def run(tokens, labels):
        with context(tokens, labels):
            loss = F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())
            loss.backward()
        loss = loss.detach()
        if OPTIONS["mode"] in ("fsdp", "ddp", "cp"):  # a rank's loss is of its tokens
            torch.distributed.all_reduce(loss.div_(2))
        return loss.full_tensor() if hasattr(loss, "full_tensor") else loss

    return run


def make(rank):
    import torch
    from torch import nn

    inputs, mode, device = peer_inputs.Inputs(OPTIONS["file"]), OPTIONS["mode"], OPTIONS["device"]
    if mode != "one":
        torch.distributed.init_process_group("gloo")
    plain = define()
    peer_inputs.fill(plain, inputs.parameters)
    model, context = parallel(plain.to(device), mode)
    if OPTIONS["compile"]:
        model = torch.compile(model)
    run = pipelined.batch(model, rank, OPTIONS["rows"]) if mode == "pp" else whole_batch(model, context)
    clip = pipelined.clip if mode == "pp" else nn.utils.clip_grad_norm_
    optimizer = torch.optim.AdamW(model.parameters(), lr=OPTIONS["learning_rate"], betas=(0.9, 0.95), weight_decay=0.1,
                                  fused=True)
    parts, steps = 2 if mode in ("fsdp", "ddp") else 1, itertools.count()

    def step():
        tokens, labels = (t.to(device) for t in inputs.batch(next(steps), rank, parts))
        optimizer.zero_grad()
        loss = run(tokens, labels)
        clip(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


contender.run(make, ranks=1 if OPTIONS["mode"] == "one" else 2)
