"""The jobs of parts 3 and 4, as `lockstep train` is given them."""
import json
import random

WORDS = "and the of that to in he shall unto for his lord they be is him not them with it all thou".split()
MESH = ["--parallelism.data_parallel_shard_degree=2", "--parallelism.tensor_parallel_degree=2"]


def text(check):
    """A text to learn, the same in every run."""
    path = check.out / "text.txt"
    if not path.is_file():
        draw = random.Random(7)
        path.write_text(" ".join(draw.choice(WORDS) for _ in range(60000)))
    return path


def sizes(check, flavor, rows, length, steps):
    """Cut down in a trial."""
    return ("debugmodel", (rows + 1) // 2, 32, min(steps, 3)) if check.trial else (flavor, rows, length, steps)


def job(check, name, flavor="debugmodel", rows=4, length=512, steps=20):
    """Words of a command."""
    file = check.out / "job.toml"
    file.write_text('[model]\nname = "llama3"\n[lr_scheduler]\nwarmup_steps = 2\n[metrics]\nlog_freq = 1\n')
    flavor, rows, length, steps = sizes(check, flavor, rows, length, steps)
    values = {"job.dump_folder": check.out / name, "model.flavor": flavor, "training.steps": steps,
              "training.dataset_path": text(check), "training.local_batch_size": rows, "training.seq_len": length,
              "training.device": check.device, "numerics.mode": "native", "optimizer.lr": 1e-3}
    if check.trial:
        values["model.layers"] = 1
    return [file, *(f"--{key}={value}" for key, value in values.items())]


def train(check, name, words, before=(), **options):
    """Trains; what --json says of it."""
    result = check.out / f"{name}.json"
    result.unlink(missing_ok=True)
    check.run(name, [check.binary("lockstep"), *before, "train", *words, "--json", result], **options)
    return json.loads(result.read_text())


def losses(result):
    return [step["loss"] for step in result["steps"]]


def tokens_per_second(result):
    """The median without the first steps, in which plans are made and memory is taken."""
    rates = sorted(step["tokens_per_second"] for step in result["steps"][len(result["steps"]) // 3:])
    return rates[len(rates) // 2]
