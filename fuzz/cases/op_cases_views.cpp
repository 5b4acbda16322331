// How the rows of runtime/planning/rules/views.cpp are called.
#include <ATen/Functions.h>
#include <rapidcheck.h>

#include <numeric>

#include "fuzz/cases/op_cases.h"

namespace lockstep::testing {
namespace {

using enum OpCase::Trait;

constexpr unsigned kView = kExact | kIntegers | kGradient;
constexpr unsigned kViewAlone = kExact | kIntegers;

OpCase whole_view(const char* op, unsigned traits) {
  return {op, traits, [](Inputs& in) { return Stack{in.distinct(in.sizes(0, 3))}; }};
}

size_t wrapped(int64_t dim, size_t count) {
  return static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(count) : dim);
}

Stack draw_view(Inputs& in) {
  const auto [from, to] = in.regrouped();
  return {in.distinct(from), to};
}

Stack draw_reshape_alias(Inputs& in) {
  const auto [from, to] = in.regrouped();
  return {in.distinct(from), to, at::empty(to).strides().vec()};
}

Stack draw_concatenation(Inputs& in) {
  const auto sizes = in.sizes(1, 3);
  const auto dim = in.dimension(sizes.size());
  std::vector<at::Tensor> parts;
  for (auto count = in.number(1, 3); count > 0; --count) {
    auto part = sizes;
    part[wrapped(dim, sizes.size())] = in.size();
    parts.push_back(in.distinct(part));
  }
  return {parts, dim};
}

Stack draw_stack(Inputs& in) {
  const auto sizes = in.sizes(0, 2);
  std::vector<at::Tensor> parts;
  for (auto count = in.number(1, 3); count > 0; --count) parts.push_back(in.distinct(sizes));
  return {parts, in.dimension(sizes.size() + 1)};
}

Stack draw_expansion(Inputs& in) {
  const auto sizes = in.sizes(0, 3);
  auto from = in.broadcast(sizes), to = sizes;
  for (size_t d = 0; d < from.size(); ++d)
    if (in.number(0, 3) == 3) to[d + to.size() - from.size()] = -1;
  for (size_t d = 0; d < to.size() - from.size(); ++d) to[d] = sizes[d];
  return {in.distinct(from), to};
}

Stack draw_permutation(Inputs& in) {
  const auto sizes = in.sizes(0, 4);
  Sizes order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = 1; i < order.size(); ++i)
    std::swap(order[i], order[static_cast<size_t>(in.number(0, static_cast<int64_t>(i)))]);
  return {in.distinct(sizes), order};
}

Stack draw_transposition(Inputs& in) {
  const auto sizes = in.sizes(1, 3);
  return {in.distinct(sizes), in.dimension(sizes.size()), in.dimension(sizes.size())};
}

struct Slicing {
  Sizes sizes;
  int64_t dim, start, end, step;
};

Slicing draw_slicing(Inputs& in) {
  Slicing result{in.sizes(1, 3), 0, 0, 0, 1};
  result.dim = in.dimension(result.sizes.size());
  const auto size = result.sizes[wrapped(result.dim, result.sizes.size())];
  result.start = in.number(0, size);
  result.end = in.number(result.start, size + 1);
  if (in.number(0, 3) == 3) result = {result.sizes, result.dim, 0, std::numeric_limits<int64_t>::max(), 1};
  if (in.number(0, 2) == 2) result.step = in.number(1, 3);
  return result;
}

Stack draw_slice(Inputs& in) {
  const auto s = draw_slicing(in);
  return {in.distinct(s.sizes), s.dim, s.start, s.end, s.step};
}

Stack draw_slice_backward(Inputs& in) {
  const auto s = draw_slicing(in);
  const auto slice = at::empty(s.sizes).slice(s.dim, s.start, s.end, s.step);
  return {in.distinct(slice.sizes().vec()), s.sizes, s.dim, s.start, s.end, s.step};
}

struct Selection {
  Sizes sizes;
  int64_t dim, index;
};

Selection draw_selection(Inputs& in) {
  Selection result{in.sizes(1, 3), 0, 0};
  result.dim = in.dimension(result.sizes.size());
  auto& size = result.sizes[wrapped(result.dim, result.sizes.size())];
  size = std::max<int64_t>(size, 1);
  result.index = in.number(0, size - 1) - (in.flag() ? size : 0);
  return result;
}

Stack draw_select(Inputs& in) {
  const auto s = draw_selection(in);
  return {in.distinct(s.sizes), s.dim, s.index};
}

Stack draw_select_backward(Inputs& in) {
  const auto s = draw_selection(in);
  auto rest = s.sizes;
  rest.erase(rest.begin() + static_cast<ptrdiff_t>(wrapped(s.dim, rest.size())));
  return {in.distinct(rest), s.sizes, s.dim, s.index};
}

Stack draw_split(Inputs& in) {
  const auto sizes = in.sizes(1, 3);
  return {in.distinct(sizes), in.number(1, 4), in.dimension(sizes.size())};
}

Stack draw_split_with_sizes(Inputs& in) {
  auto sizes = in.sizes(1, 3);
  const auto dim = in.dimension(sizes.size());
  Sizes parts;
  for (auto count = in.number(1, 3); count > 0; --count) parts.push_back(in.number(0, 3));
  sizes[wrapped(dim, sizes.size())] = std::accumulate(parts.begin(), parts.end(), int64_t{0});
  return {in.distinct(sizes), parts, dim};
}

Stack draw_dimension(Inputs& in) {
  const auto sizes = in.sizes(1, 3);
  return {in.distinct(sizes), in.dimension(sizes.size())};
}

Stack draw_squeeze_dims(Inputs& in) {
  const auto sizes = in.sizes(1, 4);
  Sizes dims;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (in.flag()) dims.push_back(static_cast<int64_t>(d) - (in.flag() ? static_cast<int64_t>(sizes.size()) : 0));
  return {in.distinct(sizes), dims};
}

Stack draw_unbinding(Inputs& in) {
  const auto s = draw_selection(in);  // no dimension of size 0: nothing would come out
  return {in.distinct(s.sizes), s.dim};
}

Stack draw_new_dimension(Inputs& in) {
  const auto sizes = in.sizes(0, 3);
  return {in.distinct(sizes), in.dimension(sizes.size() + 1)};
}

}  // namespace

std::vector<OpCase> view_cases() {
  return {
      {"_reshape_alias", kViewAlone | kDense | kGradient, draw_reshape_alias},
      {"_unsafe_view", kView | kDense, draw_view},
      whole_view("alias", kView),
      {"cat", kView, draw_concatenation},
      whole_view("detach", kViewAlone),
      {"expand", kView, draw_expansion},
      {"permute", kView, draw_permutation},
      {"select.int", kView, draw_select},
      {"select_backward", kViewAlone | kGradient, draw_select_backward},
      {"slice.Tensor", kView, draw_slice},
      {"slice_backward", kViewAlone | kGradient, draw_slice_backward},
      {"split.Tensor", kView, draw_split},
      {"split_with_sizes", kView, draw_split_with_sizes},
      whole_view("squeeze", kView),
      {"squeeze.dim", kView, draw_dimension},
      {"squeeze.dims", kView, draw_squeeze_dims},
      {"stack", kView, draw_stack},
      {"t", kView, [](Inputs& in) { return Stack{in.distinct(in.sizes(0, 2))}; }},
      {"transpose.int", kView, draw_transposition},
      {"unbind.int", kView, draw_unbinding},
      {"unsafe_split.Tensor", kView, draw_split},
      {"unsqueeze", kView, draw_new_dimension},
      {"view", kView | kDense, draw_view},
  };
}

}  // namespace lockstep::testing
