// Attention whose keys come block by block, for sequences that no rank has whole: only canonical numerics needs it.
#include "core/error.h"
#include "runtime/kernels/sums/sum_tree.h"
#include "runtime/kernels/tensors/canonical_attention.h"
#include "runtime/own_ops/attention_shapes.h"
#include "runtime/own_ops/families.h"
#include "runtime/own_ops/mesh_ops.h"

namespace lockstep {

using at::Tensor;

namespace own_ops {
namespace {

constexpr int64_t kWeights = mesh_ops::kAttentionWeights;
static_assert(kWeights == kernels::kAttentionWeights && mesh_ops::kAttentionBlock == kernels::kAttentionBlock);

OpSharding over_sharding(const Call& call) {
  const int64_t group = group_of(call, 0, 1);
  OpSharding sharding;
  sharding.operands = {query_dims(group), key_dims(), key_dims(), query_dims(group), query_dims(group)};
  sharding.results = {query_dims(group), query_dims(group)};
  return sharding;
}

std::vector<ResultShape> over_shapes(const Call& call) {
  check_heads(call, 0);
  const auto [sums, rows] = output_sizes(call, 0);
  auto weights = rows;
  weights.push_back(kWeights);
  expect_sizes(call, 3, sums), expect_sizes(call, 4, weights);
  return {{sums, {}, call.operand_dtypes[3]}, {weights, {}, call.operand_dtypes[4]}};
}

OpSharding document_over_sharding(const Call& call) {
  auto sharding = over_sharding(call);
  sharding.operands.push_back(places_dims());
  if (has_draws(call, 6)) sharding.operands.push_back(draws_dims(group_of(call, 0, 1)));
  return sharding;
}

std::vector<ResultShape> document_over_shapes(const Call& call) {
  auto shapes = over_shapes(call);
  expect_places(call, 5, call.operand_sizes[0]), expect_draws(call, 6, call.operand_sizes[0]);
  return shapes;
}

OpSharding result_sharding(const Call&) {
  OpSharding sharding;
  sharding.operands = {{{0}, {1}, {2}, {}}, {{0}, {1}, {2}, {}}};
  sharding.results = {{{0}, {1}, {2}, {}}, {{0}, {1}, {2}}};
  return sharding;
}

std::vector<ResultShape> result_shapes(const Call& call) {
  const auto& sums = call.operand_sizes[0];
  if (sums.size() != 4)
    fail<BadInput>("{}: sums should be [batch, heads, length, size]; they have {} dimensions", call.op, sums.size());
  expect_sizes(call, 1, {sums[0], sums[1], sums[2], kWeights});
  const auto dtype = call.operand_dtypes[0];
  return {heads_inside(sums, dtype), heads_inside({sums[0], sums[1], sums[2]}, dtype)};
}

/// Operands: gradient, query, key, value, output, log_sum, query_gradient. All rows are here: nodes are of them.
OpSharding over_backward_sharding(const Call& call) {
  const int64_t group = group_of(call, 1, 2);
  const OpShardingDims queries{{0}, {1, group}, {}, {}}, nodes{{}, {0}, {1}, {}, {}};
  OpSharding sharding;
  sharding.operands = {queries, queries, key_dims(), key_dims(), queries, {{0}, {1, group}, {}}, queries};
  sharding.results = {queries, nodes, nodes};
  return sharding;
}

/// Of query rows [first, first + rows) of all_rows.
int64_t nodes_of_rows(const Call& call, int64_t rows) {
  const int64_t first = call.argument("first").toInt(), all = call.argument("all_rows").toInt();
  const auto tree = SumTree::over_elements(all);
  if (first < 0 || first + rows > all || !tree.is_boundary(first) || !tree.is_boundary(first + rows))
    fail<BadInput>("{}: query rows {} to {} of {} are no whole leaves of {}", call.op, first, first + rows, all,
                   tree.leaf);
  return static_cast<int64_t>(cover(tree, first, rows).size());
}

/// heads_inside(), nodes outside of everything.
ResultShape nodes_inside(const std::vector<int64_t>& sizes, int64_t nodes, c10::ScalarType dtype) {
  auto shape = heads_inside(sizes, dtype);
  shape.strides.insert(shape.strides.begin(), sizes[0] * sizes[1] * sizes[2] * sizes[3]);
  shape.sizes.insert(shape.sizes.begin(), nodes);
  return shape;
}

std::vector<ResultShape> over_backward_shapes(const Call& call) {
  check_heads(call, 1);
  const auto [out, rows] = output_sizes(call, 1);
  const auto& query = call.operand_sizes[1];
  expect_sizes(call, 0, out), expect_sizes(call, 4, out), expect_sizes(call, 5, rows), expect_sizes(call, 6, query);
  const auto dtype = call.operand_dtypes[6];
  const int64_t nodes = nodes_of_rows(call, query[2]);
  return {heads_inside(query, dtype), nodes_inside(call.operand_sizes[2], nodes, dtype),
          nodes_inside(call.operand_sizes[3], nodes, dtype)};
}

OpSharding document_over_backward_sharding(const Call& call) {
  auto sharding = over_backward_sharding(call);
  sharding.operands.push_back({{0}, {}});
  if (has_draws(call, 8)) sharding.operands.push_back({{0}, {1, group_of(call, 1, 2)}, {}, {}});
  return sharding;
}

std::vector<ResultShape> document_over_backward_shapes(const Call& call) {
  auto shapes = over_backward_shapes(call);
  expect_places(call, 7, call.operand_sizes[1]), expect_draws(call, 8, call.operand_sizes[1]);
  return shapes;
}

constexpr OwnOp kOps[] = {
    {.schema = "attention_over(Tensor query, Tensor key, Tensor value, Tensor sums, Tensor weights, bool causal, "
               "float scale, int first_row) -> (Tensor, Tensor)",
     .on_cpu = kernel<kernels::attention_over>,
     .on_gpu = kernel<kernels::attention_over>,
     .rule = {"mesh::attention_over", "attention", "b(h*g)ld,bhsd,bhse,b(h*g)le,b(h*g)lw->b(h*g)le,b(h*g)lw", "-",
              Rule::kNoReduce, over_sharding, over_shapes, from_first_row<0>},
     .canonical = {.on_gpu = true}},
    {.schema = "attention_result(Tensor sums, Tensor weights) -> (Tensor, Tensor)",
     .on_cpu = kernel<kernels::attention_result>,
     .on_gpu = kernel<kernels::attention_result>,
     .rule = {"mesh::attention_result", "attention", "bhle,bhlw->bhle,bhl", "-", Rule::kNoReduce, result_sharding,
              result_shapes},
     .canonical = {.on_gpu = true}},
    {.schema = "attention_over_backward(Tensor gradient, Tensor query, Tensor key, Tensor value, Tensor output, "
               "Tensor log_sum, Tensor query_gradient, bool causal, float scale, int first_row, int first, "
               "int all_rows) -> (Tensor, Tensor, Tensor)",
     .on_cpu = kernel<kernels::attention_over_backward>,
     .on_gpu = kernel<kernels::attention_over_backward>,
     .rule = {"mesh::attention_over_backward", "attention", "...->b(h*g)ld,nbhsd,nbhse", "-", Rule::kNoReduce,
              over_backward_sharding, over_backward_shapes},
     .canonical = {.on_gpu = true}},
    {.schema = "document_attention_over(Tensor query, Tensor key, Tensor value, Tensor sums, Tensor weights, "
               "Tensor places, Tensor? draws, float dropout, float scale, int first_row) -> (Tensor, Tensor)",
     .on_cpu = kernel<kernels::document_attention_over>,
     .on_gpu = kernel<kernels::document_attention_over>,
     .rule = {"mesh::document_attention_over", "attention",
              "b(h*g)ld,bhsd,bhse,b(h*g)le,b(h*g)lw,bl,b(h*g)lr->b(h*g)le,b(h*g)lw", "-", Rule::kNoReduce,
              document_over_sharding, document_over_shapes, from_first_row<0>},
     .canonical = {.on_gpu = true}},
    {.schema = "document_attention_over_backward(Tensor gradient, Tensor query, Tensor key, Tensor value, "
               "Tensor output, Tensor log_sum, Tensor query_gradient, Tensor places, Tensor? draws, float dropout, "
               "float scale, int first_row, int first, int all_rows) -> (Tensor, Tensor, Tensor)",
     .on_cpu = kernel<kernels::document_attention_over_backward>,
     .on_gpu = kernel<kernels::document_attention_over_backward>,
     .rule = {"mesh::document_attention_over_backward", "attention", "...->b(h*g)ld,nbhsd,nbhse", "-", Rule::kNoReduce,
              document_over_backward_sharding, document_over_backward_shapes},
     .canonical = {.on_gpu = true}},
};

}  // namespace

OwnOpFamily attention_blocks() { return {kOps}; }

}  // namespace own_ops

namespace mesh_ops {

std::tuple<Tensor, Tensor> attention_over(const Tensor& query, const Tensor& key, const Tensor& value,
                                          const Tensor& sums, const Tensor& weights, bool causal, double scale,
                                          int64_t first_row) {
  static const auto op = own_ops::typed_op<kernels::attention_over>("mesh::attention_over");
  return op.call(query, key, value, sums, weights, causal, scale, first_row);
}

std::tuple<Tensor, Tensor> attention_result(const Tensor& sums, const Tensor& weights) {
  static const auto op = own_ops::typed_op<kernels::attention_result>("mesh::attention_result");
  return op.call(sums, weights);
}

std::tuple<Tensor, Tensor, Tensor> attention_over_backward(const Tensor& gradient, const Tensor& query,
                                                           const Tensor& key, const Tensor& value, const Tensor& output,
                                                           const Tensor& log_sum, const Tensor& query_gradient,
                                                           bool causal, double scale, int64_t first_row, int64_t first,
                                                           int64_t all_rows) {
  static const auto op = own_ops::typed_op<kernels::attention_over_backward>("mesh::attention_over_backward");
  return op.call(gradient, query, key, value, output, log_sum, query_gradient, causal, scale, first_row, first,
                 all_rows);
}

std::tuple<Tensor, Tensor> document_attention_over(const Tensor& query, const Tensor& key, const Tensor& value,
                                                   const Tensor& sums, const Tensor& weights, const Tensor& places,
                                                   const Dropout& dropout, double scale, int64_t first_row) {
  static const auto op = own_ops::typed_op<kernels::document_attention_over>("mesh::document_attention_over");
  return op.call(query, key, value, sums, weights, places, dropout.draws, dropout.share, scale, first_row);
}

std::tuple<Tensor, Tensor, Tensor> document_attention_over_backward(
    const Tensor& gradient, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& output,
    const Tensor& log_sum, const Tensor& query_gradient, const Tensor& places, const Dropout& dropout, double scale,
    int64_t first_row, int64_t first, int64_t all_rows) {
  static const auto op =
      own_ops::typed_op<kernels::document_attention_over_backward>("mesh::document_attention_over_backward");
  return op.call(gradient, query, key, value, output, log_sum, query_gradient, places, dropout.draws, dropout.share,
                 scale, first_row, first, all_rows);
}

}  // namespace mesh_ops
}  // namespace lockstep
