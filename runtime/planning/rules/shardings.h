#pragma once
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "runtime/planning/rule.h"

/// What rows of several families have in common.
namespace lockstep::rules {

/// The row `like`, once for each name. Names live as long as the program.
void add_rows(std::vector<Rule>& rows, const Rule& like, std::initializer_list<const char*> names);

/// The dimensions that a call names ("dim", "dims", "dim0", "dim1") are whole; of the others all operands and results
/// that have them in the same size are cut alike. A call that may name some and names none has nothing that may be cut.
OpSharding all_but_named(const Call& call);

/// The first dimension alone may be cut, and its results are cut alike.
OpSharding whole_but_first(const Call& call);

/// Nothing may be cut: every rank computes all of it.
OpSharding all_whole(const Call& call);

/// Where LibTorch has no meta kernel. Of a pointwise op: the operands, broadcast, and the dtypes that the op gives for
/// operands of one element.
std::vector<ResultShape> pointwise_shapes(const Call& call);
/// Every result like operand 0.
std::vector<ResultShape> shapes_like_first(const Call& call);
/// Every result like operand 0 without the dimension "dim", or with one element there ("keepdim"); the second one holds
/// indices.
std::vector<ResultShape> reduced_shapes(const Call& call);

/// The op itself on CPU tensors of one element, of the call's dtypes: what dtypes its results have.
std::vector<c10::ScalarType> dtypes_of_results(const Call& call);

/// The op itself, but on a rank that has nothing of any result, where many a kernel refuses to run.
void local_unless_empty(const LocalCall& call, torch::jit::Stack& stack);
/// Whether it is such a rank; the stack then has the results.
bool gives_nothing(const LocalCall& call, torch::jit::Stack& stack);

}  // namespace lockstep::rules
