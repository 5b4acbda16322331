#include "runtime/context/batch_scope.h"

#include <utility>

namespace lockstep {
namespace {

thread_local BatchRows current;

}  // namespace

BatchScope::BatchScope(const BatchRows& rows) : previous_(std::exchange(current, rows)) {}
BatchScope::~BatchScope() { current = previous_; }

const BatchRows& BatchScope::rows() { return current; }

}  // namespace lockstep
