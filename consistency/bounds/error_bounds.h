#pragma once
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <span>
#include <string_view>
#include <vector>

#include "runtime/planning/rule.h"

/// How far a result that was rounded on the way may be from the exact one: for each row of the op table, derived from
/// the number of its roundings (docs/bounds.md); nothing in it is tuned.
namespace lockstep {

/// One op on whole plain tensors in double, and how its run computed.
struct ExactCall {
  const c10::FunctionSchema& schema;
  std::span<const c10::IValue> arguments;   ///< floats as doubles
  std::span<const c10::IValue> magnitudes;  ///< of each float its magnitude; of an unfinished sum, that of its parts
  std::span<const at::Tensor> exact;        ///< results, floats as doubles; of what was written, its new value
  double unit;                              ///< unit roundoff of the arithmetic: fp32's for 16-bit dtypes
  double stored_unit = 0;                   ///< of 16-bit dtypes, the dtype's; else 0
  double more_roundings = 0;                ///< of sums that are added up on the way to the op
  bool by_tensor_cores = false;             ///< native numerics on a GPU

  const c10::IValue& argument(std::string_view name) const;
  at::Tensor tensor(std::string_view name) const;     ///< in double, unless it holds integers
  at::Tensor magnitude(std::string_view name) const;  ///< in double
  double number(std::string_view name) const;

  /// So far may n roundings, in a row or in a sum of any order, be from the exact value, where `magnitude` is the op
  /// applied to magnitudes: n u / (1 - n u) of it, and n of the smallest normal numbers (Higham, Accuracy and Stability
  /// of Numerical Algorithms, 2nd ed., lemma 3.1 and section 4.2). Sums stay below n u whatever n is (Jeannerod and
  /// Rump, 2013): beyond n u = 1/2 it is twice that.
  at::Tensor rounded(double roundings, const at::Tensor& magnitude) const;
  /// The same of roundings to a 16-bit dtype on the way; nothing for others.
  at::Tensor stored(double roundings, const at::Tensor& magnitude) const;
  /// Of ops whose 16-bit form rounds whenever this one does.
  at::Tensor rounded_as_stored(double roundings, const at::Tensor& magnitude) const;
};

/// What may be asked of the results of one row.
struct ErrorBound {
  enum class Kind {
    kSameBits,   ///< it rounds nothing, or draws, or decides: what one device gives, bit by bit
    kRounded,    ///< `allowed`
    kUnwritten,  ///< its results are memory that nobody has written
  };
  Kind kind = Kind::kSameBits;
  /// Per result: how far each element may be from the exact one before it is rounded to a 16-bit dtype, in doubles that
  /// broadcast to it; not defined for results that are no floats. Bits of one device need no such look.
  std::vector<at::Tensor> (*allowed)(const ExactCall&) = nullptr;
  /// Of one result: how far two results may be from each other, both rounded in fp32 or wider; larger than it need be,
  /// and cheap. Its arguments are of their own dtypes, magnitudes and exact results are not there. Null: there is none.
  at::Tensor (*roughly)(const ExactCall&) = nullptr;
};

/// Null: nothing is known of the row.
const ErrorBound* error_bound(const Rule& rule);

/// Whether the results of an op of this row are memory that nobody has written; of none (null): they are not.
bool is_unwritten(const Rule* rule);

/// Whether the row is one of those that have no bound so far.
bool is_left_out(const Rule& rule);

/// As in ExactCall::rounded(); the number of roundings may be another for each element.
at::Tensor rounded(const at::Tensor& roundings, double unit, const at::Tensor& magnitude);
at::Tensor rounded(double roundings, double unit, const at::Tensor& magnitude);

}  // namespace lockstep
