#pragma once
#include <string>

#include "core/error.h"

namespace lockstep::testing {

/// What the error of this family says that `action` must throw.
template <class Family, class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Family& error) {
    return error.what();
  }
  return "no such error";
}

}  // namespace lockstep::testing
