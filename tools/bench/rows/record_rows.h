#pragma once
#include <vector>

#include "tools/bench/row.h"

namespace lockstep::bench {

/// `lockstep bench record`: what recording costs a step of the demo job's size (debugmodel, 4 x 128 tokens, four
/// simulated ranks, dp_shard=2,tp=2), beside the same step unrecorded, one thread, in milliseconds: digests alone, a
/// ring of two steps in memory, and everything to a folder in the system's temporary one (two more threads' worth of
/// work and the disk take part). digest_1MiB: tensor_digest() of a megabyte in the cache beside memcpy, in
/// microseconds. state_digest: the digest of the state and the comparison of its copies, which a save takes besides
/// writing, beside a step, in milliseconds.
std::vector<BenchRow> record_rows();

}  // namespace lockstep::bench
