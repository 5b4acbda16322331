#pragma once
#include <c10/util/Exception.h>

#include <string>
#include <string_view>

#include "core/error.h"

namespace lockstep::trainer {

/// What LibTorch says where there is no memory left: that is nobody's wrong result.
inline constexpr const char* kLackOfMemory = "can't allocate memory";

/// Calls `check`. A wrong result may show as an error of ours or of LibTorch's, of sizes or counts that it leads to:
/// those say on which mesh and in which step.
template <class Check>
auto with_place(const std::string& mesh, int64_t step, const Check& check) {
  try {
    return check();
  } catch (const InternalError& error) {
    fail<InternalError>("mesh {}, step {}: {}", mesh, step, error.what());
  } catch (const c10::Error& error) {
    if (std::string_view(error.what()).find(kLackOfMemory) != std::string_view::npos) throw;
    fail<InternalError>("mesh {}, step {}: LibTorch: {}", mesh, step, error.what_without_backtrace());
  }
}

}  // namespace lockstep::trainer
