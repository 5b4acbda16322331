# torchrun --nproc-per-node 4 amax.py: the gradient of the maximum of all shards is no number
import torch
import torch.distributed as dist
from torch.distributed.tensor import Shard, distribute_tensor
mesh = dist.init_device_mesh("cpu", (4,))
x = torch.arange(4, dtype=torch.float64)
cut = distribute_tensor(x, mesh, [Shard(0)]).requires_grad_()
cut.amax().backward()
print("DTensor", cut.grad.full_tensor().tolist(), "one device", [0.0, 0.0, 0.0, 1.0])
