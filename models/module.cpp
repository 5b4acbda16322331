#include "models/module.h"

#include <c10/util/accumulate.h>

#include "core/error.h"

namespace lockstep::models {
namespace {

thread_local Hooks* current_hooks = nullptr;

std::string joined(const std::string& path, const std::string& name) { return path.empty() ? name : path + "." + name; }

}  // namespace

Hooks* Hooks::current() { return current_hooks; }

HooksScope::HooksScope(Hooks& hooks) : previous_(std::exchange(current_hooks, &hooks)) {}
HooksScope::~HooksScope() { current_hooks = previous_; }

at::Tensor annotate(const at::Tensor& tensor, std::string_view axes) {
  return current_hooks ? current_hooks->annotate(tensor, axes) : tensor;
}

at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const Hooks::Attention& attention) {
  return current_hooks ? current_hooks->attend(query, key, value, attention) : attention.run(query, key, value);
}

at::Tensor run_block(Module& block, const at::Tensor& input,
                     const std::function<at::Tensor(const at::Tensor&)>& forward) {
  return current_hooks ? current_hooks->run_block(block, forward, input) : forward(input);
}

bool trains() { return !current_hooks || current_hooks->trains(); }

bool adapts() { return !current_hooks || current_hooks->adapts(); }

void balance(const Parameter& bias, const at::Tensor& counts, double rate) {
  if (current_hooks) current_hooks->balance(bias, counts, rate);
}

at::Tensor with_loss(const at::Tensor& x, const at::Tensor& losses) {
  return current_hooks ? current_hooks->with_loss(x, losses) : x;
}

at::Tensor constant(const at::Tensor& table) { return current_hooks ? current_hooks->constant(table) : table; }

Parameter::Parameter(Module& owner, std::string name, std::vector<int64_t> sizes, std::string axes, Initial initial,
                     std::vector<int64_t> units)
    : owner_(&owner),
      name_(joined(owner.path(), name)),
      sizes_(std::move(sizes)),
      axes_(std::move(axes)),
      units_(std::move(units)),
      division_(sizes_, {{name_, sizes_.empty() ? 1 : sizes_[0], initial}}) {
  if (units_.empty()) units_.assign(sizes_.size(), 1);
  LOCKSTEP_CHECK_EQ(units_.size(), sizes_.size(), "{}", name_);
  owner.add_parameter(*this);
}

void Parameter::store_as(std::string name) {
  auto parts = division_.parts();
  LOCKSTEP_CHECK_EQ(parts.size(), 1u, "{}", name_);
  parts[0].name = std::move(name);
  divide(std::move(parts));
}

int64_t Parameter::element_count() const { return c10::multiply_integers(sizes_); }

Parameter::operator at::Tensor() const { return current_hooks ? current_hooks->use(*this) : tensor_; }

Module::Module(Module& owner, std::string name) : name_(std::move(name)), path_(joined(owner.path_, name_)) {
  owner.children_.push_back(this);
}

std::vector<Parameter*> Module::parameters() const {
  auto all = own_;
  for (const auto* child : children_) {
    const auto below = child->parameters();
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

std::vector<Module*> Module::modules() const {
  std::vector<Module*> all;
  for (auto* child : children_) {
    all.push_back(child);
    const auto below = child->modules();
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

void store_as_own(const Module& module) {
  for (auto* parameter : module.parameters()) parameter->store_as(parameter->name().substr(module.path().size() + 1));
}

at::Tensor Model::forward(const at::Tensor& tokens) {
  const auto modules = blocks();
  const auto calls = block_calls(tokens.sizes());
  LOCKSTEP_CHECK(!calls.empty() && calls.size() == modules.size(), "the model has {} blocks and {} calls",
                 modules.size(), calls.size());
  auto x = tokens;
  for (size_t b = 0; b < modules.size(); ++b) x = run_block(*modules[b], x, calls[b].forward);
  return x;
}

int64_t Model::parameter_count() const {
  int64_t count = 0;
  for (const auto* parameter : parameters()) count += parameter->element_count();
  return count;
}

double Model::operations_per_token(int64_t /*length*/) const { return 6 * static_cast<double>(parameter_count()); }

double attention_operations(int64_t layers, int64_t width, int64_t length) {
  return 12 * static_cast<double>(layers) * static_cast<double>(width) * static_cast<double>(length);
}

}  // namespace lockstep::models
