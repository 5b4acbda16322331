#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/box.h"

namespace lockstep::trainer {

/// Copies what `from` and `to` both hold; `source` and `target` are their elements in row-major order.
void copy_overlap(const Box& from, std::span<const std::byte> source, const Box& to, std::span<std::byte> target,
                  int64_t element_size);

}  // namespace lockstep::trainer
