#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "fuzz/calls/sharded_calls.h"

namespace lockstep::testing {

/// The properties of a row, each to be run inside RapidCheck. They fail with one line that names the call, the sizes,
/// the mesh and the layouts.

/// Inputs in the layouts of each candidate of each mesh axis: nothing moves, the result lies as the candidate says and
/// equals one device's.
void candidates_equal_one_device(const OpCase& op_case, const Rules& rules);

/// Inputs in any layouts: the right value, always; under the strict policy the right value or BadInput.
void random_layouts_equal_one_device(const OpCase& op_case, const Rules& rules);

/// Gradients of a random linear function of the results, inputs in any layouts, against LibTorch's in float64.
void gradients_equal_one_device(const OpCase& op_case, const Rules& rules);

/// Gradients of a random linear function of those gradients: of the inputs and of the results' weights. Where LibTorch
/// has no such derivative, the mesh has none; a case in which both refuse is left out.
void double_gradients_equal_one_device(const OpCase& op_case, const Rules& rules);

/// The derived in-place form, through views too: layout kept, or its unfinished sums finished, and the right value; or
/// BadInput and nothing written.
void in_place_equals_one_device(const OpCase& op_case, const Rules& rules);

/// One operand of another size or number of dimensions, or with an index that is none, functional and in place: what
/// LibTorch refuses, and of our own ops what operand_sizes.h says, is refused in any layouts, by an error for users;
/// what is accepted has one device's value. Counts in refused_cases() and compared_cases(). Returns how many operands
/// there are.
size_t refuses_as_one_device(const OpCase& op_case, const Rules& rules);

/// Runs `property` on `cases` random cases. Returns an empty text, or what failed with the line that reruns it.
std::string failure_of(const std::string& id, int cases, const std::function<void()>& property, bool shrink = true);

/// The same, where the property counts in compared_cases()[op] what it has compared: it fails, too, when that is less
/// than a quarter of the cases: a property that never compares anything holds. `all_refused`: nothing may be compared.
std::string failure_of_counted(const std::string& id, const std::string& op, int cases,
                               const std::function<void()>& property, bool all_refused = false);

/// Whether canonical numerics refuses every call of the op, as docs/numerics.md lists them.
bool refused_by_canonical(const std::string& op);

/// How many cases of a row one run of the tests tries of candidates_equal_one_device, random_layouts_equal_one_device.
inline constexpr int kCandidateCases = 30, kLayoutCases = 120;

/// `few`, or fifty times as many when LOCKSTEP_SOAK is set.
int case_count(int few);

/// Comparisons with one device so far, per op.
std::map<std::string, int64_t>& compared_cases();
/// Calls that were refused as they should be so far, per op.
std::map<std::string, int64_t>& refused_cases();

}  // namespace lockstep::testing
