#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/SmallVector.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/kernels/sums/sum_tree.h"
#include "runtime/tensor/spec.h"

namespace lockstep {

class RunContext;
struct Rule;

/// Where the schema has the argument of that name ("dim", "keepdim", "alpha"). Throws InternalError if it has none.
size_t argument_number(const c10::FunctionSchema& schema, std::string_view name);

/// Whether it has one: the forms of an op differ.
bool has_argument(const c10::FunctionSchema& schema, std::string_view name);

/// Where a tensor operand stands among the arguments: argument number, and element number in a list (-1: no list).
struct Slot {
  int argument;
  int element;
};

/// One op on one rank's shards: takes the arguments with the rank's shards in place off the stack, leaves the results.
struct LocalCall {
  const c10::OperatorHandle& op;
  const struct Plan& plan;
  size_t index;  ///< of the local rank
  const RunContext& context;
  uint64_t stream = 0;  ///< of a random op: what all ranks of the call draw from
  /// Of packed rows among the operands, which cells are present here; null: there are none.
  const at::Tensor* present = nullptr;
  at::Tensor* packs = nullptr;  ///< of Rule::kPacks: which cells the result's rows are of, to be filled

  /// The argument of that name in the op's schema.
  const c10::IValue& argument(const torch::jit::Stack& stack, std::string_view name) const {
    return stack[argument_number(op.schema(), name)];
  }
  at::Tensor tensor(const torch::jit::Stack& stack, std::string_view name) const {
    return argument(stack, name).toTensor();
  }
  void set_argument(torch::jit::Stack& stack, std::string_view name, c10::IValue value) const {
    stack[argument_number(op.schema(), name)] = std::move(value);
  }
};
using LocalFunction = void (*)(const LocalCall&, torch::jit::Stack&);

/// A rule applied to concrete layouts.
struct Plan {
  const Rule* rule = nullptr;             ///< null: a factory, run as it is on every rank
  std::vector<Slot> slots;                ///< the tensor operands
  std::vector<int> operand_of;            ///< per argument: the slot of a tensor; -1: no tensor, or a list of them
  std::vector<const TensorSpec*> given;   ///< per slot; null: a plain 0-dim tensor
  std::vector<const TensorSpec*> wanted;  ///< per slot: the layout the op needs
  bool moves = false;                     ///< some operand is redistributed
  std::vector<const TensorSpec*> results;
  std::vector<int> dtype_arguments, device_arguments;
  LocalFunction local = nullptr;  ///< null: the op itself
  std::optional<SumTree> batch;   ///< Rule::kSamples: over the first dimension of operand 0
  int written = -1;               ///< slot that is written in place and returned, the first of `all_written`
  std::vector<int> all_written;   ///< slots
  bool written_apart = false;     ///< the target cannot stay as it lies: the functional op runs, and is copied into it
  /// What is written where it is an unfinished sum that has to be finished first; null: it is written as it lies.
  const TensorSpec* written_reduced = nullptr;
  bool returns_list = false;
  bool is_view = false;          ///< the results share the bytes of operand 0
  bool detached_view = false;    ///< a view that no view of the shards expresses: a copy
  bool widens_integers = false;  ///< a float-valued op of integers alone, in the float64 domain: computed in double
  bool checked = false;          ///< local sizes and dtypes were compared once
  bool reorders = false;         ///< some rank's kernel orders a result's memory otherwise than `results` say
};

/// "[tp=R], [tp=S(0)] -> [tp=S(2)]": the layouts that the op itself takes and gives.
std::string layouts_of(const Plan& plan);

/// Everything a plan depends on, in a few words: schema, specs, sizes, integers. Floating-point arguments are a part of
/// it where sizes depend on them (Rule::kSizesFromScalars), and nowhere else: no other plan may depend on them.
struct PlanKey {
  c10::SmallVector<int64_t, 24> words;
  bool operator==(const PlanKey& other) const {
    return words.size() == other.words.size() &&
           std::memcmp(words.data(), other.words.data(), words.size() * sizeof(int64_t)) == 0;
  }
};

struct PlanKeyHash {
  size_t operator()(const PlanKey& key) const {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (const int64_t word : key.words) {
      hash = (hash ^ static_cast<uint64_t>(word)) * 0xff51afd7ed558ccdu;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

}  // namespace lockstep
