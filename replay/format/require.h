#pragma once
#include <utility>

#include "core/error.h"

namespace lockstep::replay {

/// Throws BadInput with the message unless it holds.
template <class... Args>
void require(bool holds, fmt::format_string<Args...> what, Args&&... args) {
  if (!holds) [[unlikely]]
    fail<BadInput>(what, std::forward<Args>(args)...);
}

}  // namespace lockstep::replay
