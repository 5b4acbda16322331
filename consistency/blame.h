#pragma once
#include <ATen/core/ivalue.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "consistency/difference.h"
#include "runtime/context/observer.h"

namespace lockstep {

/// What is to blame for a step that differs from one device's: the first thing that does, in the order of the program.
struct Blame {
  /// "op": it took what it takes on one device, and gave something else. "collective", "local move": the value changed
  /// on its way from one layout to another. "operand": an op took something else than what the ops before it gave (a
  /// view, an input, a buffer that was written since). "number": an op got another number, or one that is computed
  /// between ops is another. "joined": so are gradients of microbatches that are added up outside of ops. "step": what
  /// was compared agrees. "start", "data": the step was wrong before it began.
  std::string kind = {};
  std::string id = {};                  ///< "step 1, microbatch 0, backward, layers.0.attention.qkv, linear #0"
  std::string phase = {}, module = {};  ///< as in the id
  std::string op = {};                  ///< "linear"; what communicates: "reduce_gradients"
  std::string rule = {};                ///< family and dims of its row; of an op
  std::string layouts = {};             ///< "[tp=R], [tp=S(0)] -> [tp=S(2)]"
  std::string worst = {};               ///< index, both values, relative error, pattern, ranks
  std::string collective = {};          ///< of a move: "reduce_scatter"
  std::string axis = {};                ///< the mesh axis that it goes along, or that what is wrong goes along
  std::vector<int> group = {};          ///< the ranks of that axis that the first wrong rank is among
  std::vector<int> ranks = {};          ///< whose values are wrong; of a Partial all that share it
  std::string pattern = {};             ///< Difference::pattern
  std::string before = {};              ///< what was compared until then
  std::string limits = {};              ///< what this report cannot tell; empty: nothing
  int64_t position = 0;                 ///< how many events came before it
  bool transient = false;               ///< run again, the step agreed

  /// Of kind "collective" or "local move".
  bool is_of_move() const { return !collective.empty(); }
  std::string text() const;
};

/// Compares what an op gave with one device's, result by result: the first that differs. Collectives of all ranks, for
/// every result. `look`: at the shards of all ranks of each result before it is compared, to add what is known of them.
std::optional<Blame> compare_op(const OpEvent& event, const std::vector<at::Tensor>& results,
                                const std::vector<at::Tensor>& expected, double tolerance,
                                const std::function<void(size_t result, HeldShards&)>& look = {});

/// How one result of an op compares with one device's. `all`: of every rank.
Difference difference_of_result(const OpEvent& event, const HeldShards& all, const at::Tensor& expected,
                                double tolerance);

/// "result", or of several "result 1".
std::string result_name(size_t result, size_t count);

/// The fields that say which this is: id, phase, module and op.
Blame blame_of(const char* kind, const OpId& id);
/// Those that name an op.
Blame blame_of(const char* kind, const OpEvent& event);
/// Those of an op with a wrong result, which lies as `result` says.
Blame blame_of(const OpEvent& event, const Difference& difference, const TensorSpec& result);
/// Those of a move that changes a value, all of them.
Blame blame_of(const MoveEvent& event, const Difference& difference);
/// Those that say what differs.
void describe(Blame& blame, const Difference& difference);

}  // namespace lockstep
