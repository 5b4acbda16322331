#pragma once
#include <array>

#include "runtime/kernels/attention/attention_oracle.h"
#include "tests/support/cases/product_cases.h"

/// Random attentions for comparing kernels with their oracle.
namespace lockstep::testing {

/// A tensor [batch, heads, rows, size] in memory of its own, its dimensions in any order, padded, at any address.
template <class T>
struct OwnedHeads {
  OwnedHeads(int64_t batch, int64_t heads, int64_t rows, int64_t size, std::mt19937& random, bool any_layout)
      : batches(batch), head_count(heads), row_count(rows), width(size) {
    const auto pad = [&] { return any_layout ? static_cast<int64_t>(random() % 4) : 0; };
    view.element_stride = any_layout && random() % 5 == 0 ? 2 : 1;
    int64_t stride = size * view.element_stride + pad();
    if (any_layout && random() % 2 == 0) {
      view.head_stride = stride, stride = stride * heads + pad();
      view.row_stride = stride, stride = stride * rows + pad();
    } else {
      view.row_stride = stride, stride = stride * rows + pad();
      view.head_stride = stride, stride = stride * heads + pad();
    }
    view.batch_stride = stride;
    const auto shift = static_cast<std::size_t>(pad());
    memory.resize(static_cast<std::size_t>(stride * batch) + shift + 1, T{});
    view.data = memory.data() + shift;
  }

  OwnedHeads& fill(std::mt19937& random, Numbers kind, float factor = 1) {
    for (auto& value : memory) {
      value = number<T>(random, kind);
      if constexpr (!std::is_same_v<T, kernels::Bfloat16>) value *= static_cast<T>(factor);
    }
    return *this;
  }
  kernels::HeadTensor<const T> read() const {
    return {view.data, view.batch_stride, view.head_stride, view.row_stride, view.element_stride};
  }

  int64_t batches, head_count, row_count, width;
  std::vector<T> memory;
  kernels::HeadTensor<T> view;
};

struct AttentionSizes {
  int64_t batch, heads, group, rows, keys, depth, width;
};

inline AttentionSizes any_attention_sizes() {
  const auto length = rc::gen::weightedOneOf<int64_t>({{8, rc::gen::inRange<int64_t>(0, 40)},
                                                       {4, rc::gen::inRange<int64_t>(30, 150)},
                                                       {1, rc::gen::inRange<int64_t>(250, 550)}});
  const auto depth =
      rc::gen::weightedOneOf<int64_t>({{3, rc::gen::inRange<int64_t>(1, 40)}, {1, rc::gen::inRange<int64_t>(60, 70)}});
  return {*rc::gen::inRange<int64_t>(1, 3),
          *rc::gen::inRange<int64_t>(1, 3),
          *rc::gen::inRange<int64_t>(1, 4),
          *length,
          *length,
          *depth,
          *depth};
}

/// One attention with random numbers, and what the oracle says about it.
template <class Input, class T>
struct AttentionCase {
  static AttentionCase any() {
    const auto sizes = any_attention_sizes();
    const bool causal = *rc::gen::arbitrary<bool>();
    const auto seed = *rc::gen::arbitrary<uint32_t>();
    return AttentionCase(sizes, causal, *rc::gen::inRange<int64_t>(0, 60),
                         *rc::gen::element(Numbers::kNormal, Numbers::kTiny, Numbers::kSpecial), seed);
  }

  AttentionCase(const AttentionSizes& s, bool causal, int64_t first_row, Numbers kind, uint32_t seed)
      : random(seed),
        factor(random() % 4 == 0 ? 30.0f : 1.0f),
        range(row_range(s.rows)),
        query(heads<Input>(s, s.rows, s.depth, s.group, kind)),
        key(heads<Input>(s, s.keys, s.depth, 1, kind)),
        value(heads<Input>(s, s.keys, s.width, 1, kind)),
        gradient(heads<Input>(s, s.rows, s.width, s.group, kind)),
        input_output(heads<Input>(s, s.rows, s.width, s.group, kind)),
        shape{s.batch, s.heads, s.group, s.rows, s.keys, s.depth, s.width, causal, first_row, 0.17} {
    if (causal && random() % 2 == 0) draw_documents();
    if (random() % 2 == 0) draw_dropout();
    const auto nodes = cover(SumTree::over_elements(range.all), range.first, s.rows).size();
    node_count = range.all == 0 ? 1 : static_cast<int64_t>(nodes);
    expected = run([](const auto& work) { kernels::attention_forward_oracle<Input, T>(work); },
                   [](const auto& work) { kernels::attention_backward_oracle<Input, T>(work); });
  }

  struct Results {
    std::vector<T> output, log_sum, query, key, value;
    bool operator==(const Results& other) const {
      return same_numbers(output, other.output) && same_numbers(log_sum, other.log_sum) &&
             same_numbers(query, other.query) && same_numbers(key, other.key) && same_numbers(value, other.value);
    }
  };

  Results run(InstructionSet set, int threads) const {
    return run([&](const auto& work) { kernels::attention_forward<Input, T>(work, thread_workers(threads), set); },
               [&](const auto& work) { kernels::attention_backward<Input, T>(work, thread_workers(threads), set); });
  }

  /// What kernels with the arguments of attention_forward and attention_backward make of it. The backward pass reads
  /// the log-sum of the forward pass, and an output of its own.
  template <class Forward, class Backward>
  Results run(const Forward& forward, const Backward& backward) const {
    std::mt19937 fixed(7);
    const int64_t all_heads = shape.heads * shape.group, nodes = node_count;
    const auto make = [&](int64_t heads, int64_t rows, int64_t size) {
      return OwnedHeads<T>(shape.batch, heads, rows, size, fixed, false);
    };
    auto output = make(all_heads, shape.rows, shape.width), log_sum = make(all_heads, shape.rows, 1),
         dq = make(all_heads, shape.rows, shape.depth), dk = make(shape.heads * nodes, shape.keys, shape.depth),
         dv = make(shape.heads * nodes, shape.keys, shape.width);
    forward(
        kernels::AttentionForward<Input, T>{shape, query.read(), key.read(), value.read(), output.view, log_sum.view});
    const auto node_stride = [&](OwnedHeads<T>& x) { return x.view.head_stride * shape.heads; };
    backward(kernels::AttentionBackward<Input, T>{shape, gradient.read(), query.read(), key.read(), value.read(),
                                                  input_output.read(), log_sum.read(), range.first, range.all, dq.view,
                                                  dk.view, dv.view, node_stride(dk), node_stride(dv)});
    return {output.memory, log_sum.memory, dq.memory, dk.memory, dv.memory};
  }

  /// The rows of all shards, of which ours are `first` to `first + rows`, whole leaves.
  struct RowRange {
    int64_t first, all;
  };

  std::mt19937 random;
  float factor;
  RowRange range;
  OwnedHeads<Input> query, key, value, gradient, input_output;
  kernels::AttentionShape shape;
  std::vector<int64_t> places;  ///< of documents, if there are some
  std::vector<int64_t> draws;   ///< of dropout, if there is some
  int64_t node_count = 0;
  Results expected;

 private:
  /// Of one token, of a few, of many: of each batch its own, the first of them begun before these rows.
  void draw_documents() {
    for (int64_t batch = 0; batch < shape.batch; ++batch) {
      int64_t place = static_cast<int64_t>(random() % 40);
      const uint32_t length = std::array{2u, 9u, 60u, 400u}[random() % 4];
      for (int64_t row = 0; row < shape.rows; ++row) places.push_back(random() % length == 0 ? place = 0 : ++place);
    }
    shape.places = places.data();
  }

  /// Rows whose draws begin anywhere in a block of words, of seeds and streams of more than 32 bits.
  void draw_dropout() {
    const int64_t heads = shape.heads * shape.group;
    const auto any = [&] { return static_cast<int64_t>(random()) << 30 ^ static_cast<int64_t>(random()); };
    for (int64_t row = 0; row < shape.batch * heads * shape.rows; ++row)
      draws.insert(draws.end(), {any(), any(), 5000 + any()});
    shape.dropout = {std::array{0.1, 0.5, 0.9, 1.0}[random() % 4],
                     {draws.data(), heads * shape.rows * kernels::kDrawsOfRow, shape.rows * kernels::kDrawsOfRow,
                      kernels::kDrawsOfRow, 1}};
  }

  RowRange row_range(int64_t rows) {
    if (rows == 0 || random() % 2 == 0) return {0, rows};
    for (int attempt = 0; attempt < 300; ++attempt) {
      const auto some = [&] { return random() % 3 == 0 ? 0 : static_cast<int64_t>(random() % 300); };
      const int64_t before = some(), all = before + rows + some();
      const auto tree = SumTree::over_elements(all);
      if (all > rows && tree.is_boundary(before) && tree.is_boundary(before + rows)) return {before, all};
    }
    return {0, rows};
  }
  template <class N>
  OwnedHeads<N> heads(const AttentionSizes& s, int64_t rows, int64_t size, int64_t group, Numbers kind) {
    return std::move(OwnedHeads<N>(s.batch, s.heads * group, rows, size, random, true).fill(random, kind, factor));
  }
};

/// Property: kernels give the oracle's bits, whatever the sizes, layouts, masks, parts and numbers.
template <class Input, class T, class Forward, class Backward>
void attention_equals_oracle(const Forward& forward, const Backward& backward) {
  const auto attention = AttentionCase<Input, T>::any();
  RC_ASSERT(attention.run(forward, backward) == attention.expected);
}

}  // namespace lockstep::testing
