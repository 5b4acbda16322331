"""One of four ranks that try samples on PyTorch's DTensor; the first one writes a line of JSON for each outcome.

dtensor_ranks.py RANK PORT FIRST SAMPLES SEED PATTERN FILE PROGRAMS
"""

import fnmatch
import json
import pathlib
import random
import sys
import warnings

_HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(_HERE.parent), str(_HERE.parents[2] / "bindings" / "python")]

import dtensor_group  # noqa: E402
import dtensor_trial  # noqa: E402
import lockstep  # noqa: E402
import programs  # noqa: E402
import samples  # noqa: E402
import trial  # noqa: E402


def chance_of(seed, name, which):
    """The mesh, and what draws the layouts: the same for whoever asks."""
    chance = random.Random(f"{seed} {name} {which}")
    return chance.choice(dtensor_group.MESHES), chance


def on_lockstep(op, sample, seed, which, draws, backward):
    """The same sample in the same layouts."""
    axes, chance = chance_of(seed, samples.name_of(op), which)
    return trial.Trial(op, sample, lockstep.mesh(axes), chance, which, draws).run(backward)


def samples_of(op, seed, most):
    """(sample, number, whether it draws, whether it has gradients)"""
    if isinstance(op, programs.Program):
        return [(op.sample(), 0, False, True)]
    backward = samples.takes_gradients(op)
    try:
        return [(sample, which, draws, backward) for sample, which, _, draws in samples.drawn_samples(op, seed, most)]
    except Exception:  # noqa: BLE001: a sample that torch itself cannot make here
        return []


def outcomes_of(op, seed, most, group):
    """A line for each sample, on the first rank."""
    for sample, which, draws, backward in samples_of(op, seed, most):
        axes, chance = chance_of(seed, samples.name_of(op), which)
        theirs = dtensor_trial.DTensorTrial(op, sample, axes, chance, which, draws).run(group, backward)
        if group.rank == 0:
            ours = on_lockstep(op, sample, seed, which, draws, backward)
            where = f"{op.text()}: " if isinstance(op, programs.Program) else ""
            yield {"op": samples.name_of(op), "kind": theirs.kind, "text": where + theirs.text, "lockstep": ours.kind,
                   "lockstep_text": where + ours.text}


def main():
    rank, port, first, most, seed = map(int, sys.argv[1:6])
    pattern, file, count = sys.argv[6:9]
    warnings.filterwarnings("ignore")
    group = dtensor_group.Group(rank, port)
    work = [op for op in samples.all_ops() if fnmatch.fnmatch(samples.name_of(op), pattern)]
    work += [programs.Program(number) for number in range(seed * 1000, seed * 1000 + int(count))]
    with open(file if rank == 0 else "/dev/null", "a", encoding="utf-8") as out:
        for number, op in enumerate(work):
            if number < first:
                continue
            if group.count > dtensor_group.MOST_GROUPS:
                print(json.dumps({"pauses": number}), file=out, flush=True)
                return
            print(json.dumps({"begins": number, "op": samples.name_of(op)}), file=out, flush=True)
            for line in outcomes_of(op, seed, most, group):
                print(json.dumps(line), file=out, flush=True)


if __name__ == "__main__":
    main()
