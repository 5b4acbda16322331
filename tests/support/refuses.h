#pragma once
#include <c10/util/Exception.h>

#include "core/error.h"

namespace lockstep::testing {

/// Whether it throws an error of LibTorch's, or ours of wrong input.
template <class Call>
bool refuses(const Call& call) {
  try {
    call();
    return false;
  } catch (const BadInput&) {
    return true;
  } catch (const c10::Error&) {
    return true;
  }
}

}  // namespace lockstep::testing
