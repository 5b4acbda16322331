#include "runtime/transport/rendezvous/pair_memory.h"

namespace lockstep {

FileDescriptor create_pair_memory() { return create_sealed_memory(sizeof(PairMemory)); }

}  // namespace lockstep
