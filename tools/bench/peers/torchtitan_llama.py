"""Steps of a debugmodel, Llama 3's or DeepSeek-V3's, by torchtitan 0.2.2, as it is, for `lockstep bench peers`.

usage: torchtitan_llama.py JSON       peer_inputs.options() says of what

What torchtitan takes for granted of a GPU is given to it for a CPU (on_cpu), and its parameters and batches are those that
all contenders have. All else is its Trainer's: one call of train_step() is one step, its loss and norm read each time."""
import dataclasses
import functools
import itertools
import os
import resource
import sys
import tempfile

import contender
import peer_inputs
import ring_attention

OPTIONS = peer_inputs.options()
DEGREES = {"one": {}, "fsdp": {}, "ddp": {"data_parallel_replicate_degree": 2, "data_parallel_shard_degree": 1},
           "tp": {"tensor_parallel_degree": 2}, "pp": {"pipeline_parallel_degree": 2},
           "cp": {"context_parallel_degree": 2}, "experts_one": {}, "experts": {"expert_parallel_degree": 2}}
HAS_EXPERTS = OPTIONS["mode"].startswith("experts")
PARTS = 2 if OPTIONS["mode"] in ("fsdp", "ddp", "experts") else 1  # of a batch


def on_cpu():
    """torchtitan 0.2.2 on a CPU with Gloo: what it has for GPUs alone."""
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import FSDPModule

    torch._utils._get_available_device_type = lambda: "cpu"

    def peak(*_):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return {"active_bytes.all.peak": most, "reserved_bytes.all.peak": most}

    class Properties:
        total_memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    known = {"get_device_name": lambda *_: "cpu", "get_device_properties": lambda *_: Properties, "memory_stats": peak,
             "reset_peak_memory_stats": lambda *_: None, "empty_cache": lambda: None}
    for name, function in known.items():
        setattr(torch.cpu, name, function)

    barrier = dist.barrier  # of which it names the device
    dist.barrier = lambda *arguments, device_ids=None, **others: barrier(*arguments, **others)

    divide = FSDPModule.set_gradient_divide_factor  # by a reduction that Gloo does not have

    def divide_by_sum(module, factor):
        divide(module, factor)
        module.set_force_sum_reduction_for_comms(True)

    FSDPModule.set_gradient_divide_factor = divide_by_sum
    if HAS_EXPERTS:
        from torchtitan.models.moe import utils

        # Its order of rows comes from a kernel for GPUs, or, if asked, from a loop.
        utils.generate_permute_indices = functools.partial(utils.generate_permute_indices, use_cpu=True)
        count = torch.histc  # which a CPU has for floats alone
        torch.histc = lambda x, *others, **named: count(x.float(), *others, **named).to(x.dtype)


def arguments(folder):
    given = {"model.name": "deepseek_v3" if HAS_EXPERTS else "llama3", "model.flavor": "debugmodel",
             "training.local_batch_size": OPTIONS["rows"] // PARTS,
             "training.seq_len": OPTIONS["length"], "training.steps": 1 << 30,
             "training.mixed_precision_param": "float32", "optimizer.lr": OPTIONS["learning_rate"],
             "lr_scheduler.warmup_steps": 0, "lr_scheduler.decay_ratio": 0.0, "metrics.log_freq": 1,
             "activation_checkpoint.mode": "none", "job.dump_folder": folder}
    given.update({"parallelism." + key: degree for key, degree in DEGREES[OPTIONS["mode"]].items()})
    words = [word for key, value in given.items() for word in ("--" + key, str(value))]
    return words + (["--compile.enable"] if OPTIONS["compile"] else [])


def loss_of_last_stage(loss):
    """Which nobody else has."""
    import torch

    value = torch.tensor(float(loss))
    torch.distributed.broadcast(value, 1)
    return value.item()


def make_trainer(inputs, losses):
    from torchtitan import train
    from torchtitan.components import metrics
    from torchtitan.config import ConfigManager
    from torchtitan.protocols import train_spec

    known = train_spec.get_train_spec
    own = {"build_tokenizer_fn": None, "build_dataloader_fn": None}  # tokens come from the file
    log = metrics.MetricsProcessor.log

    def record(processor, step, average, *others, **named):
        losses.append(loss_of_last_stage(average) if OPTIONS["mode"] == "pp" else float(average))
        log(processor, step, average, *others, **named)

    metrics.MetricsProcessor.log = record
    train.train_spec_module.get_train_spec = lambda name: dataclasses.replace(known(name), **own)
    trainer = train.Trainer(ConfigManager().parse_args(arguments(tempfile.mkdtemp())))
    peer_inputs.fill(trainer.model_parts[0], inputs.parameters, is_stage=OPTIONS["mode"] == "pp")
    return trainer


def batches(trainer, inputs, rank):
    def pairs():
        for step in itertools.count():
            tokens, labels = inputs.batch(step, rank, PARTS)
            yield {"input": tokens}, labels

    return trainer.batch_generator(pairs())


def make(rank):
    if OPTIONS["device"] == "cpu":
        on_cpu()
    if OPTIONS["mode"] == "cp":
        ring_attention.on_cpu()
    sys.argv = sys.argv[:1]  # which it reads as it is loaded
    inputs, losses = peer_inputs.Inputs(OPTIONS["file"]), []
    trainer = make_trainer(inputs, losses)
    source = batches(trainer, inputs, rank)

    def step():
        trainer.step += 1
        trainer.train_step(source)
        return losses.pop() if losses else None

    return step


contender.run(make, ranks=1 if OPTIONS["mode"] in ("one", "experts_one") else 2)
