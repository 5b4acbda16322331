#pragma once
#include <ATen/core/ivalue.h>

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/planning/op_sharding.h"
#include "runtime/planning/plan.h"

namespace lockstep {

/// Sizes, strides (empty: contiguous) and declared dtype of one result.
struct ResultShape {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides = {};
  c10::ScalarType dtype = c10::kFloat;
  Packing packing = {};
};

/// 0, 1, ..., count - 1.
std::vector<int> all_dimensions(int64_t count);

/// One concrete call as rules see it: global sizes, dtypes and the arguments that are no tensors.
struct Call {
  std::string_view op;
  const c10::FunctionSchema& schema;
  std::span<const c10::IValue> arguments;
  int64_t batch_rows = 0;  ///< samples in the batch, where a BatchScope says it
  std::vector<Slot> slots = {};
  std::vector<std::vector<int64_t>> operand_sizes = {};  ///< per slot
  std::vector<c10::ScalarType> operand_dtypes = {};
  std::vector<ResultShape> results = {};

  int64_t dims(size_t operand) const { return static_cast<int64_t>(operand_sizes[operand].size()); }
  const c10::IValue& argument(std::string_view name) const { return arguments[argument_number(schema, name)]; }
  /// Which operand the tensor argument of that name is. REQUIRES: a tensor, not a list of them.
  size_t operand(std::string_view name) const;
  const std::vector<int64_t>& sizes_of(std::string_view name) const { return operand_sizes[operand(name)]; }
  c10::ScalarType dtype_of(std::string_view name) const { return operand_dtypes[operand(name)]; }
  /// Argument as a dimension number, wrapped into [0, dim_count).
  int dimension(std::string_view argument, int64_t dim_count) const;
  /// Argument as a list of dimensions, all of them if it is empty or None.
  std::vector<int> dimensions(std::string_view argument, int64_t dim_count) const;
  std::vector<std::vector<int64_t>> result_sizes() const;
};

/// One row of the op table. In-place forms are derived from the functional row through the schema.
struct Rule {
  const char* op;               ///< "mm", "add.Tensor"
  const char* family;           ///< "matmul", "pointwise", ...: what tables are ordered by; decides nothing
  const char* dims;             ///< see parse_op_sharding(); for rules with a sharding function, a description of it
  const char* linearity = "-";  ///< see parse_linearity()
  enum Trait : unsigned {
    kPlain = 0,
    kExact = 1,
    kRandom = 2,
    kNoReduce = 4,
    kMax = 8,
    kSamples = 16,            ///< operand 0 begins with the batch, and sums over it have one leaf per sample
    kDisjoint = 32,           ///< of the ranks' summands at most one is not +0, whatever is cut
    kAdds = 64,               ///< self + alpha * other: unfinished sums may stay side by side (formal_sum())
    kRounds = 128,            ///< sums over elements have rounded levels (rounded_levels())
    kSizesFromScalars = 256,  ///< sizes of the result depend on floating-point arguments (arange)
    kReadsSizesOnly = 512,    ///< operand 0 is never read: it stays where it is, whatever it is
    kRearranges = 1024,       ///< computes nothing: elements get other places, or none
    kComputedView = 4096,     ///< a view of values that no memory holds: a copy, written back through the op
    kRealOnly = 8192,         ///< complex operands or results are refused
    kPacks = 16384,           ///< the result is packed rows, of which the local call says the cells
    kUnpacks = 32768,         ///< takes packed rows; the result is no rows of their cells
    kOfRows = 65536,          ///< takes packed rows, and gives such of the same cells, from each row alone
    kTwoWords = 2048,         ///< the result is one integer, high * 2^32 + low, of which sums carry nothing
  };
  unsigned traits = kPlain;
  OpSharding (*sharding)(const Call&) = nullptr;              ///< for ops whose dims depend on arguments
  std::vector<ResultShape> (*shapes)(const Call&) = nullptr;  ///< where LibTorch has no meta kernel
  LocalFunction local = nullptr;                              ///< where a shard's result is not the op of the shards
  /// kRandom: whether the call draws; null: always.
  bool (*draws)(const c10::FunctionSchema&, std::span<const c10::IValue>) = nullptr;
  /// Canonical numerics. The built-in table's is data of its own: rules/canonical/.
  enum class Canonical : uint8_t {
    kRefuses,  ///< no call runs: bits might depend on where an element lies
    kAsIs,     ///< LibTorch's own call, or `local`, whose bits depend on values and global indices alone
    kOwnForm,  ///< another local call
  } canonical = Canonical::kRefuses;
  bool canonical_on_gpu = false;  ///< the same bits on a GPU; others refuse to run there under canonical numerics
  const char* instead = nullptr;  ///< of kRefuses: what to write instead; null where nothing is known
};

/// Whether operands and results are all "...": an element comes from those at its place alone.
bool is_pointwise(const Rule& rule);
/// Whether the op is one of Lockstep's own (runtime/own_ops): no dispatcher of LibTorch's knows its sizes.
bool is_own_op(const Rule& rule);
/// Whether results depend on sizes and numbers alone: new tensors, filled.
bool reads_no_values(const Rule& rule);

/// How a reduction of operand 0 over `dims` may be sharded: its results lack them, or have one element there (`keep`).
OpSharding reduced_over(const Call& call, const std::vector<int>& dims, bool keep);
/// The same over all dimensions, none of which is kept.
OpSharding reduced_over_all(const Call& call);

/// How a call may be sharded under its rule.
OpSharding op_sharding_of(const Rule& rule, const Call& call);

}  // namespace lockstep
