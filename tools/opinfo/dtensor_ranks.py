"""One of four ranks that try samples on PyTorch's DTensor; the first one writes a line of JSON for each outcome.

dtensor_ranks.py RANK PORT FIRST SAMPLES SEED PATTERN FILE
"""

import datetime
import fnmatch
import json
import pathlib
import random
import sys
import warnings

_HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(_HERE.parent), str(_HERE.parents[2] / "bindings" / "python")]

import torch.distributed as dist  # noqa: E402

import dtensor_trial  # noqa: E402
import samples  # noqa: E402

RANKS = 4
MESHES = ("a=4", "a=2,b=2")


def main():
    rank, port, first, most, seed = map(int, sys.argv[1:6])
    pattern, file = sys.argv[6:8]
    warnings.filterwarnings("ignore")
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=RANKS,
                            timeout=datetime.timedelta(seconds=15))
    with open(file if rank == 0 else "/dev/null", "a", encoding="utf-8") as out:
        for number, op in enumerate(samples.all_ops()):
            if number < first or not fnmatch.fnmatch(samples.name_of(op), pattern):
                continue
            print(json.dumps({"begins": number, "op": samples.name_of(op)}), file=out, flush=True)
            try:
                drawn = list(samples.drawn_samples(op, seed, most))
            except Exception:  # noqa: BLE001: a sample that torch itself cannot make here
                continue
            for sample, which, _, draws in drawn:
                chance = random.Random(f"{seed} {samples.name_of(op)} {which}")
                axes = chance.choice(MESHES)
                one = dtensor_trial.DTensorTrial(op, sample, axes, chance, which, draws)
                outcome = one.run(samples.takes_gradients(op))
                print(json.dumps({"op": samples.name_of(op), "kind": outcome.kind, "text": outcome.text}), file=out,
                      flush=True)


if __name__ == "__main__":
    main()
