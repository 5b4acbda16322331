#include "runtime/dispatch/functional_forms.h"

#include <algorithm>
#include <unordered_map>

#include "runtime/planning/make_plan.h"

namespace lockstep {
namespace {

bool is_written(const c10::Argument& argument) { return argument.alias_info() && argument.alias_info()->isWrite(); }

bool is_of_tensors(const c10::FunctionSchema& schema) {
  const auto holds_tensor = [](const c10::Argument& argument) {
    return argument.type()->str().find("Tensor") != std::string::npos;
  };
  return std::any_of(schema.arguments().begin(), schema.arguments().end(), holds_tensor) ||
         std::any_of(schema.returns().begin(), schema.returns().end(), holds_tensor);
}

/// What a tensor to write to says by itself.
bool follows_from_out(const c10::Argument& argument) {
  constexpr std::string_view kNames[] = {"dtype", "layout", "device", "pin_memory"};
  return argument.kwarg_only() && std::find(std::begin(kNames), std::end(kNames), argument.name()) != std::end(kNames);
}

bool agree(const c10::FunctionSchema& functional, const c10::FunctionSchema& out) {
  std::vector<const c10::Argument*> wanted;
  for (const auto& argument : out.arguments())
    if (!is_written(argument)) wanted.push_back(&argument);
  size_t next = 0;
  for (const auto& argument : functional.arguments()) {
    const bool same =
        next < wanted.size() && argument.name() == wanted[next]->name() && *argument.type() == *wanted[next]->type();
    if (same)
      ++next;
    else if (is_written(argument) || !follows_from_out(argument))
      return false;
  }
  return next == wanted.size() && functional.returns().size() == out.returns().size();
}

const std::vector<c10::OperatorHandle>& overloads(const std::string& name) {
  static const auto all = [] {
    std::unordered_map<std::string, std::vector<c10::OperatorHandle>> by_name;
    for (const auto& op : tensor_ops()) by_name[op.operator_name().name].push_back(op);
    return by_name;
  }();
  static const std::vector<c10::OperatorHandle> none;
  const auto found = all.find(name);
  return found == all.end() ? none : found->second;
}

}  // namespace

const std::vector<c10::OperatorHandle>& tensor_ops() {
  static const auto all = [] {
    std::vector<c10::OperatorHandle> ops;
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const auto& full : dispatcher.getAllOpNames()) {
      if (!full.name.starts_with("aten::")) continue;
      const auto op = dispatcher.findSchema(full);
      if (op && is_of_tensors(op->schema())) ops.push_back(*op);
    }
    std::sort(ops.begin(), ops.end(), [](const auto& a, const auto& b) { return op_name(a) < op_name(b); });
    return ops;
  }();
  return all;
}

bool is_out_form(const c10::FunctionSchema& schema) {
  bool any = false;
  for (const auto& argument : schema.arguments()) {
    if (!is_written(argument)) continue;
    if (!argument.kwarg_only()) return false;
    any = true;
  }
  return any;
}

bool is_in_place_form(const c10::FunctionSchema& schema) {
  return std::any_of(schema.arguments().begin(), schema.arguments().end(),
                     [](const c10::Argument& each) { return is_written(each) && !each.kwarg_only(); });
}

std::optional<c10::OperatorHandle> functional_of_out(const c10::OperatorHandle& out) {
  thread_local std::unordered_map<const void*, std::optional<c10::OperatorHandle>> known;
  const auto [found, is_new] = known.try_emplace(&out.schema());
  if (!is_new || !is_out_form(out.schema())) return found->second;
  for (const auto& candidate : overloads(out.operator_name().name))
    if (!found->second && agree(candidate.schema(), out.schema())) found->second = candidate;
  return found->second;
}

}  // namespace lockstep
