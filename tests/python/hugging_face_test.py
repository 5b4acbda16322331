"""Weights of Hugging Face's transformers in Lockstep and back: tiny random models, sharded files, grouped queries, tied heads.

Log-probabilities agree within 1e-5, and what `lockstep checkpoint export` writes gives transformers the logits that it had,
bit for bit.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers
from safetensors.torch import save_file

BUILD = pathlib.Path(sys.argv[1]).resolve()
LENGTH = 24


def llama(kind=transformers.LlamaConfig, **changes):
    sizes = dict(hidden_size=48, intermediate_size=72, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
                 vocab_size=61, max_position_embeddings=64, rms_norm_eps=1e-5, rope_theta=10000.0, initializer_range=0.2)
    return kind(**{**sizes, **changes})


def scaled(factor):
    return {"rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192}


MODELS = {
    "grouped queries": llama(),
    "Llama 3.1": llama(rope_theta=500000.0, rope_scaling=scaled(8.0)),
    "tied": llama(tie_word_embeddings=True, rope_scaling=scaled(32.0), num_key_value_heads=6),
    "qwen2": llama(transformers.Qwen2Config, num_key_value_heads=3, rms_norm_eps=1e-6),
    "mixtral": llama(transformers.MixtralConfig, num_local_experts=5, num_experts_per_tok=2),
    "qwen3_moe": llama(transformers.Qwen3MoeConfig, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=40, head_dim=10,
                       norm_topk_prob=True, mlp_only_layers=[0]),
    "deepseek_v3": llama(transformers.DeepseekV3Config, num_key_value_heads=6, rms_norm_eps=1e-6, n_routed_experts=8, num_experts_per_tok=3,
                         moe_intermediate_size=36, n_group=4, topk_group=2, first_k_dense_replace=1, q_lora_rank=20,
                         kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=6, n_shared_experts=1),
    "gpt2": transformers.GPT2Config(n_embd=48, n_layer=2, n_head=4, vocab_size=61, initializer_range=0.1),
}


def model_of(config):
    model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():  # biases and norms begin as constants
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.add_(torch.randn_like(buffer) * 0.1)
    return model


def run(*words, **variables):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run([str(word) for word in words], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{words} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def check(name, config, folder):
    model = model_of(config)
    tokens = torch.randint(0, config.vocab_size, (2, LENGTH))
    with torch.no_grad():
        logits = model(tokens).logits
    model.save_pretrained(folder / "model", max_shard_size="60KB")
    (folder / "expected").mkdir()
    save_file({"tokens": tokens.float(), "logits": logits.contiguous()}, folder / "expected" / "model.safetensors")
    said = run(BUILD / "tests" / "test_trainer", "--gtest_filter=HuggingFaceLogits.*", LOCKSTEP_EXPECTED_LOGITS=str(folder))
    assert "[  PASSED  ] 1 test." in said, said
    lockstep = BUILD / "lockstep"
    run(lockstep, "checkpoint", "import", folder / "model", folder / "ours", "-q")
    run(lockstep, "checkpoint", "export", folder / "ours", folder / "back", "-q", "--length", config.max_position_embeddings)
    with torch.no_grad():
        again = transformers.AutoModelForCausalLM.from_pretrained(folder / "back", dtype=torch.float32).eval()(tokens).logits
    assert torch.equal(again, logits), f"{name}: {(again - logits).abs().max()}"
    worst = next(line for line in said.splitlines() if line.startswith("worst"))
    print(f"{name}: log-probabilities {worst}, logits come back equal")


def main():
    transformers.logging.set_verbosity_error()
    torch.manual_seed(0)
    for name, config in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            check(name, config, pathlib.Path(folder))


main()
