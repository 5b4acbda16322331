"""PyTorch's context parallelism on a CPU, for pytorch_llama.py and torchtitan_llama.py.

PyTorch 2.11 has it for the attention of GPUs alone. Its ring, the balance of its load and its gradients are as they
are; added is the CPU's attention, as the op that they call."""

SEQUENCE = 2  # the dimension that is cut


def forward(ring, query, key, value, dropout=0.0, causal=False, **named):
    import torch

    op = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
    tensors = (t.to_local() for t in (query, key, value))
    return ring._templated_ring_attention(query.device_mesh.get_group(), SEQUENCE, op, *tensors, is_causal=causal,
                                          dropout_p=dropout, **named)


def backward(ring, gradient, query, key, value, out, log_sums, dropout, causal, **named):
    import torch

    op = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
    tensors = (t.to_local() for t in (query, key, value, out, log_sums))
    return ring._templated_ring_attention_backward(query.device_mesh.get_group(), SEQUENCE, op, gradient.to_local(),
                                                   "grad_out", *tensors, is_causal=causal, dropout_p=dropout, **named)


def on_cpu():
    """From now on both ops are known wherever PyTorch turns context parallelism on."""
    import torch
    from torch.distributed.tensor import DTensor, Shard
    from torch.distributed.tensor.experimental._context_parallel import _attention as ring

    def handler(function):
        def handle(op, arguments, named):
            mesh = arguments[0].device_mesh
            return tuple(DTensor.from_local(part, mesh, [Shard(SEQUENCE)], run_check=False)
                         for part in function(ring, *arguments, **named))

        return handle

    ops = torch.ops.aten
    ring.custom_ops[ops._scaled_dot_product_flash_attention_for_cpu.default] = handler(forward)
    ring.custom_ops[ops._scaled_dot_product_flash_attention_for_cpu_backward.default] = handler(backward)
