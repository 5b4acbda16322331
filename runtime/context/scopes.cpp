#include "runtime/context/scopes.h"

#include <torch/csrc/autograd/function.h>

#include <utility>

#include "runtime/context/observer.h"
#include "runtime/context/world.h"

namespace lockstep {
namespace {

const void* running_node() { return torch::autograd::get_current_node().get(); }

}  // namespace

PhaseScope::PhaseScope(Phase phase)
    : context_(RunContext::current()), previous_(std::exchange(context_.open_.phase, phase)) {}

ModuleScope::ModuleScope(std::string_view name)
    : context_(RunContext::current()), previous_length_(context_.open_.module.size()) {
  auto& module = context_.open_.module;
  if (!module.empty() && !name.empty()) module += '.';
  module += name;
  context_.draws_.push_back(0);
  context_.remember_open();
}

ModuleScope::~ModuleScope() {
  context_.open_.module.resize(previous_length_);
  context_.draws_.pop_back();
  context_.remember_open();
}

BatchScope::BatchScope(const BatchRows& rows)
    : context_(RunContext::current()), previous_(std::exchange(context_.open_.rows, {rows, running_node()})) {
  context_.remember_open();
}

BatchScope::~BatchScope() {
  context_.open_.rows = previous_;
  context_.remember_open();
}

RandomScope::RandomScope(uint64_t seed)
    : context_(RunContext::current()), previous_(std::exchange(context_.open_.seed, {seed, running_node()})) {
  context_.remember_open();
}

RandomScope::~RandomScope() {
  context_.open_.seed = previous_;
  context_.remember_open();
}

InitialValuesScope::InitialValuesScope()
    : context_(RunContext::current()), previous_(std::exchange(context_.open_.step, 0)) {}

MeshScope::MeshScope(const Mesh& mesh)
    : context_(RunContext::current()), previous_(std::exchange(context_.open_.mesh, &mesh)) {}

void name_communication(World& world, std::string_view name) {
  if (!world.observers().empty())
    RunContext::current().next_op_id(name);
  else if (world.transport())
    RunContext::current().set_uncounted_op(name);
}

CommunicationScope::CommunicationScope(World& world, std::string_view name)
    : context_(RunContext::current()), last_op_(context_.last_op_), uncounted_(context_.uncounted_) {
  name_communication(world, name);
}

CommunicationScope::~CommunicationScope() {
  context_.last_op_ = std::move(last_op_);
  context_.uncounted_ = std::move(uncounted_);
}

}  // namespace lockstep
