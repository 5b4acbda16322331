#include "fuzz/trials/row_moves.h"

#include <ATen/Functions.h>
#include <rapidcheck.h>

#include "core/error.h"
#include "core/mesh_text.h"
#include "fuzz/calls/drawn_mesh.h"
#include "fuzz/cases/generators.h"
#include "fuzz/cases/tensors.h"
#include "fuzz/trials/rule_properties.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/packed_rows.h"
#include "runtime/transport/simulated.h"

namespace lockstep::testing {
namespace {

/// Which cells have a row: none, all, or some of them.
at::Tensor drawn_cells(const std::vector<int64_t>& sizes) {
  const auto share = *rc::gen::element(0, 1, 2, 3);
  auto cells = at::zeros(sizes, c10::kBool);
  auto flat = cells.flatten();
  for (int64_t i = 0; i < flat.numel(); ++i) flat[i] = share == 3 || (share > 0 && *rc::gen::inRange(0, 3) < share);
  return cells;
}

at::Tensor only_present(const at::Tensor& whole, const at::Tensor& cells) {
  auto mask = cells;
  while (mask.dim() < whole.dim()) mask = mask.unsqueeze(-1);
  return at::where(mask, whole, at::zeros({}, whole.options()));
}

struct RowMoves {
  std::vector<MeshAxis> axes;
  std::vector<int64_t> cell_sizes, row_sizes;
  at::Tensor cells;
  bool as_messages;
  uint64_t order;
  size_t one_round;

  std::vector<int64_t> sizes() const {
    auto all = cell_sizes;
    all.insert(all.end(), row_sizes.begin(), row_sizes.end());
    return all;
  }
};

RowMoves draw_row_moves() {
  RowMoves moves;
  moves.axes = *mesh_axes(3, 12);
  moves.cell_sizes = *sizes(3, 5), moves.row_sizes = *sizes(2, 3);
  if (moves.cell_sizes.empty()) moves.cell_sizes = {1};
  moves.cells = drawn_cells(moves.cell_sizes);
  moves.as_messages = *rc::gen::arbitrary<bool>(), moves.order = *rc::gen::arbitrary<uint64_t>();
  moves.one_round = *rc::gen::element<size_t>(0, 1 << 16);
  return moves;
}

std::unique_ptr<World> world_of(const RowMoves& moves) {
  World::Options options;
  options.one_round_bytes = moves.one_round;
  if (moves.as_messages) options.transport = std::make_shared<SimulatedTransport>(moves.order);
  return simulated_world(moves.axes, options);
}

/// What is wrong with rows that have come to a layout; "" if nothing is.
std::string wrong_with(const at::Tensor& rows, const at::Tensor& cells, const at::Tensor& expected,
                       const Layout& target) {
  const auto layout = layout_of(rows);
  if (layout != without_idle_units(target, expected.sizes())) return "lie as " + layout.text();
  if (!same_bits(gather(rows), expected)) return "have other values";
  if (Layout::parse(layout.mesh(), layout.text()).text() != layout.text()) return "lie as what is not read back";
  const auto& present = sharded(rows).shards()->present();
  const auto* spec = spec_of_cells(spec_of(rows));
  for (size_t i = 0; i < present.size(); ++i)
    if (!present[i].equal(cut_out(*spec, cells, i))) return fmt::format("are of other cells on local rank {}", i);
  return "";
}

}  // namespace

void moves_keep_rows() {
  const auto moves = draw_row_moves();
  const auto world = world_of(moves);
  const auto& mesh = world->mesh(moves.axes);
  const auto sizes = moves.sizes();
  const int dims = static_cast<int>(sizes.size());
  const auto source = layout(mesh, dims, false);
  const Layout targets[] = {layout(mesh, dims, true), layout(mesh, dims, true)};
  const auto whole = exact_tensor(sizes), expected = only_present(whole, moves.cells);
  const auto line =
      fmt::format("rows {} of {} cells, {} present, {} -> {} -> {} on {}{}", c10::str(moves.row_sizes),
                  c10::str(moves.cell_sizes), moves.cells.sum().item<int64_t>(), source.text(), targets[0].text(),
                  targets[1].text(), mesh.text(), moves.as_messages ? ", as messages" : "");
  std::string what;
  try {
    auto rows = distribute_rows(whole, moves.cells, source);
    if (!same_bits(gather(rows), expected)) what = "are cut wrongly";
    for (const auto& target : targets)
      if (what.empty()) what = wrong_with(rows = redistribute(rows, target), moves.cells, expected, target);
  } catch (const std::exception& error) {
    what = error.what();
  }
  if (!what.empty()) RC_FAIL(fmt::format("{}: {}", line, what));
  ++compared_cases()["layouts"];
}

}  // namespace lockstep::testing
