#pragma once

namespace lockstep {

/// Registers the device type `mesh` with LibTorch: its name, hooks, guard, the boxed kernel for every aten overload
/// that does not decompose, and the ops in namespace `mesh`. Idempotent and cheap after the first call; a World calls
/// it. Also, for the calling thread: autograd stays on this thread and replays views. Call it on each thread that runs
/// backward.
void register_backend();

}  // namespace lockstep
