# torchrun --nproc-per-node 4 amax.py: the gradient of a maximum of what two mesh axes cut is no number
import torch
import torch.distributed as dist
from torch.distributed.tensor import Shard, distribute_tensor
mesh = dist.init_device_mesh("cpu", (2, 2))
x = torch.arange(12, dtype=torch.float64).reshape(2, 2, 3)
cut = distribute_tensor(x, mesh, [Shard(0), Shard(2)]).requires_grad_()
cut.amax(0).sum().backward()
print("DTensor", cut.grad.full_tensor().flatten().tolist(), "one device", [0.0] * 11 + [1.0])
