"""What verify runs: two small jobs on meshes that between them move tensors in every way. Two seconds."""

TEXT = "".join(f"the cat {number * number % 97} sat on the mat, " for number in range(400))
DATA = """[training]
dataset_path = "{text}"
seq_len = 16
local_batch_size = 2
global_batch_size = 8
steps = 2
"""
LLAMA = """[model]
name = "llama3"
width = 48
layers = 2
heads = 6
key_value_heads = 3
hidden = 96
vocabulary = 256
[lr_scheduler]
warmup_steps = 1
[parallelism]
fsdp_reshard_after_forward = "always"
[activation_checkpoint]
mode = "full"
"""
MLP = """mixed_precision_param = "bfloat16"
[model]
name = "mlp"
width = 48
layers = 2
hidden = 96
vocabulary = 256
dropout = 0.1
[optimizer]
name = "SGD"
momentum = 0.9
"""
MESHES = {"llama": "tp=3; dp_shard=2,tp=2; dp_replicate=2,dp_shard=2; cp=2", "mlp": "tp=3; dp_shard=2,tp=2"}


def write(folder):
    """Writes jobs and data; returns the command."""
    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "text.txt"
    text.write_text(TEXT)
    for name, job in (("llama", LLAMA), ("mlp", MLP)):
        (folder / f"{name}.toml").write_text(DATA.format(text=text) + job)
    return " && ".join(f"\"$BUILD/lockstep\" verify -q '{folder}/{name}.toml' --training.steps 2 --meshes '{meshes}'"
                       for name, meshes in MESHES.items())
