"""Pipeline schedules beside PyTorch's: `lockstep schedule` writes the lists of actions that torch.distributed.pipelining
makes or runs, refuses the sizes that it refuses, and reads the files that it writes, communication included.

Not compared are the empty cells of PyTorch's lists, where it expects a rank to wait.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from torch.distributed.pipelining import schedules as pytorch

BUILD = pathlib.Path(sys.argv[1]).resolve()
SINGLE = ("GPipe", "1F1B")
# With PyTorch's sizes a rank goes through several stages; ZB-H1 is PyTorch's InterleavedZeroBubble over one.
LOOPED = ("Interleaved1F1B", "InterleavedZeroBubble")
IN_A_V = ("ZBVZeroBubble", "DualPipeV")
RANKS = (1, 2, 3, 4, 5, 8)
MICROBATCHES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 17)


class Stage:
    """What schedules ask a stage for; it writes down what is done with it, and has nobody to talk to."""

    submod = group = None
    has_backward = True
    group_rank = 0

    def __init__(self, index, ranks, stages):
        self.stage_index, self.num_stages, self.group_size = index, stages, ranks
        self.is_first, self.is_last = index == 0, index == stages - 1
        self.stage_index_to_group_rank = {s: s % ranks for s in range(stages)}
        self.done = []

    def forward_one_chunk(self, microbatch, *_, **__):
        self.done.append(f"{self.stage_index}F{microbatch}")

    def backward_one_chunk(self, microbatch, *_, **__):
        self.done.append(f"{self.stage_index}B{microbatch}")

    def get_fwd_recv_ops(self, _):
        return []

    get_fwd_send_ops = get_bwd_recv_ops = get_bwd_send_ops = get_fwd_recv_ops

    def perform_reduce_grad(self, _):
        pass


def stages_of(ranks, stages_per_rank):
    return [Stage(number * ranks, ranks, ranks * stages_per_rank) for number in range(stages_per_rank)]


def what_is_run(name, ranks, microbatches):
    """Of a schedule that PyTorch keeps as code alone: what it does with the stage of each rank. (The lists that it draws
    of 1F1B begin with microbatch 1 on the last rank, and name microbatches that there are not.)"""
    lists = []
    for rank in range(ranks):
        one = Stage(rank, ranks, ranks)
        # Its 1F1B refuses fewer microbatches than ranks, for which its code would do.
        schedule = pytorch.get_schedule_class(name)(one, max(ranks, microbatches))
        schedule._n_microbatches = microbatches
        schedule._initialize_stage = lambda *_: None
        schedule._step_microbatches()
        lists.append(one.done)
    return lists


def pytorchs(name, ranks, stages_per_rank, microbatches):
    """PyTorch's lists; None where it refuses the sizes."""
    if name in SINGLE:
        return what_is_run(name, ranks, microbatches)
    try:
        made = pytorch.get_schedule_class(name)(stages_of(ranks, stages_per_rank), microbatches, loss_fn=lambda *_: 0)
    except ValueError:
        return None
    return cells(made.pipeline_order)


def cells(order):
    """Each rank's actions as texts."""
    return [[str(action) for action in order[rank] if action is not None] for rank in sorted(order)]


def lockstep(*words):
    return subprocess.run([BUILD / "lockstep", "schedule", *map(str, words)], capture_output=True, text=True)


def ours(folder, name, ranks, stages_per_rank, microbatches):
    """Lockstep's lists; None where it refuses the sizes."""
    file = folder / "ours.csv"
    run = lockstep(name, "--ranks", ranks, "--stages-per-rank", stages_per_rank, "--microbatches", microbatches, "--csv",
                   file)
    assert run.returncode in (0, 2), run.stderr
    return None if run.returncode else [line.split(",") for line in file.read_text().splitlines()]


def compare(folder, name, ranks, stages_per_rank, microbatches, their_name=None):
    """Whether there is such a schedule: then both have the same."""
    theirs = pytorchs(their_name or name, ranks, stages_per_rank, microbatches)
    mine = ours(folder, name, ranks, stages_per_rank, microbatches)
    size = f"{name} ranks {ranks} stages per rank {stages_per_rank} microbatches {microbatches}"
    if theirs is None and stages_per_rank == 1 and name not in SINGLE:
        assert mine is not None, f"{size}: rounds make no difference with one stage per rank"
        return False
    assert (theirs is None) == (mine is None), f"{size}: refused by {'PyTorch' if theirs is None else 'Lockstep'} alone"
    if theirs is None:
        return False
    assert mine == theirs, f"{size}:\n{mine}\n{theirs}"
    return True


def every_size(folder):
    same = {}
    for ranks in RANKS:
        for microbatches in MICROBATCHES:
            sizes = [(name, 1, None) for name in SINGLE] + [(name, v, None) for name in LOOPED for v in (1, 2, 3)]
            sizes += [(name, 2, None) for name in IN_A_V] + [("ZBH1", 1, "InterleavedZeroBubble")]
            for name, stages_per_rank, their_name in sizes:
                if compare(folder, name, ranks, stages_per_rank, microbatches, their_name):
                    same[name] = same.get(name, 0) + 1
    return same


def files(folder):
    """What PyTorch writes, with and without its communication, is read as the same schedule."""
    count = 0
    for name, ranks, stages_per_rank, microbatches in (("Interleaved1F1B", 4, 2, 8), ("InterleavedZeroBubble", 3, 3, 6),
                                                       ("ZBVZeroBubble", 4, 2, 5), ("DualPipeV", 3, 2, 7)):
        theirs = pytorch.get_schedule_class(name)(stages_of(ranks, stages_per_rank), microbatches, loss_fn=lambda *_: 0)
        expected = cells(theirs.pipeline_order)
        for kind in ("compute_only", "compute_comms"):
            theirs._dump_csv(folder / "theirs.csv", kind)
            run = lockstep("--file", folder / "theirs.csv", "--csv", folder / "read.csv", "--json", folder / "read.json")
            assert run.returncode == 0, run.stderr
            assert [line.split(",") for line in (folder / "read.csv").read_text().splitlines()] == expected, (name, kind)
            left_out = json.loads((folder / "read.json").read_text())["left_out"]
            assert (left_out > 0) == (kind == "compute_comms"), (name, kind, left_out)
            count += 1
    return count


def torchtitan_reads(folder):
    """The way back: PyTorch takes Lockstep's file as torchtitan hands it over."""
    count = 0
    for name, ranks, stages_per_rank, microbatches in (("1F1B", 4, 1, 8), ("ZBH1", 4, 1, 6), ("ZBVZeroBubble", 4, 2, 9),
                                                       ("DualPipeV", 2, 2, 4)):
        mine = ours(folder, name, ranks, stages_per_rank, microbatches)
        runtime = pytorch._PipelineScheduleRuntime(stages_of(ranks, stages_per_rank), microbatches, loss_fn=lambda *_: 0)
        runtime._load_csv(folder / "ours.csv")
        assert cells(runtime.pipeline_order) == mine, name
        count += 1
    return count


def main():
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        same = every_size(folder)
        expected = {*SINGLE, *LOOPED, *IN_A_V, "ZBH1"}
        assert set(same) == expected, same
        print("pipeline schedules:", ", ".join(f"{name} {count} sizes" for name, count in sorted(same.items())),
              "equal PyTorch's;", files(folder), "of its files read,", torchtitan_reads(folder), "of ours read by it")


if __name__ == "__main__":
    main()
