#include "trainer/mutation/recipes.h"

namespace lockstep::trainer {
namespace {

using Kind = Site::Kind;
using C = Change;
using Where = Recipe::Where;
using When = Recipe::When;
using Changes = std::vector<Change>;

bool is_of(const Site& site, Kind kind) { return site.kind == kind; }
bool is_value(const Site& site) { return (is_of(site, Kind::kOp) && !site.is_view) || is_of(site, Kind::kMove); }
bool crosses(const Site& site) { return !site.collective.empty(); }
bool in(const Site& site, Phase phase) { return is_value(site) && site.id.phase == phase; }
bool is_float(const Site& site) { return is_value(site) && site.is_float; }
bool is_view(const Site& site) { return is_of(site, Kind::kOp) && site.is_view; }
bool is_state(const Site& site) { return is_of(site, Kind::kState); }
bool is_slot(const Site& site) { return is_state(site) && site.tensor != site.id.module; }
bool is_parameter(const Site& site) { return is_state(site) && site.tensor == site.id.module; }
bool is_number(const Site& site) { return is_of(site, Kind::kNumber); }
bool is_gradient(const Site& site) { return is_of(site, Kind::kGradient); }
bool is_draw(const Site& site) { return is_of(site, Kind::kDraw); }
bool is_saved(const Site& site) { return is_of(site, Kind::kSaved); }
bool is_rate(const Site& site) { return is_of(site, Kind::kRate); }
bool is_metadata(const Site& site) { return is_of(site, Kind::kMetadata); }
bool is_batch(const Site& site) { return is_of(site, Kind::kBatch); }
bool is_argument(const Site& site) { return is_of(site, Kind::kArgument) && site.is_float; }
bool is_place(const Site& site) { return is_of(site, Kind::kArgument) && !site.is_float; }
bool is_clip_scale(const Site& site) {
  return is_argument(site) && site.id.phase == Phase::kOptimizer &&
         (site.tensor == "gradient_scale" || (site.id.op == "mul.Scalar" && site.id.occurrence == 0));
}
bool is_normaliser(const Site& site) { return is_argument(site) && site.id.op.starts_with("div"); }
/// Tokens, labels, positions, masks.
bool is_whole_number(const Site& site) { return is_of(site, Kind::kOperand) && !site.is_float; }
bool is_buffer(const Site& site) {
  const auto phase = site.id.phase;
  return is_of(site, Kind::kOperand) && site.is_float && !site.is_partial &&
         (phase == Phase::kForward || phase == Phase::kBackward || phase == Phase::kRecompute);
}
bool is_part_of_sum(const Site& site) { return site.is_reduction && site.is_float; }
bool is_piece(const Site& site) { return is_of(site, Kind::kPieces); }

ClassOfRecipes m1() {
  return {{"M1", "a dropped collective"},
          {{is_piece, {C::kZero}},
           {[](const Site& s) { return is_of(s, Kind::kMove) && crosses(s) && s.is_reduction; }, {C::kBefore}}}};
}
ClassOfRecipes m2() { return {{"M2", "another kind or order"}, {{crosses, {C::kReverse, C::kRoll, C::kOtherRank}}}}; }
ClassOfRecipes m3() { return {{"M3", "another group"}, {{crosses, {C::kOtherRank}}, {crosses, {C::kOtherGroup}}}}; }
ClassOfRecipes m4() {
  return {{"M4", "a constant factor"},
          {{is_float, {C::kTimes}}, {is_gradient, {C::kTimes}}, {is_argument, {C::kTimes}}}};
}
ClassOfRecipes m5() {
  return {{"M5", "an average for a sum"},
          {{[](const Site& s) { return is_of(s, Kind::kMove) && is_part_of_sum(s); }, {C::kTimes}, Where::kAll}}};
}
ClassOfRecipes m6() {
  return {{"M6", "offset, permutation or order of shards, rows or parts"},
          {{is_value, {C::kRoll, C::kReverse, C::kOtherRank}},
           {is_view, {C::kRoll, C::kReverse, C::kOtherRank}},
           {is_whole_number, {C::kRoll, C::kReverse, C::kOtherRank}},
           {is_batch, {C::kRoll, C::kReverse}, Where::kAll},
           {is_place, {C::kPlus}},
           {is_saved, {C::kRoll, C::kReverse}, Where::kAll, When::kResumed}}};
}
ClassOfRecipes m7() {
  return {{"M7", "a part of a sum for the whole, or the reverse"},
          {{[](const Site& s) {
              return (is_piece(s) && s.is_reduction) || (is_of(s, Kind::kOp) && !s.is_view && s.is_replicated);
            },
            {C::kZero, C::kTimes}},
           {[](const Site& s) { return is_of(s, Kind::kMove) && s.is_reduction; }, {C::kBefore}}}};
}
ClassOfRecipes m8() {
  return {{"M8", "another random stream"},
          {{is_draw, {C::kPlus, C::kOtherRank}},
           {is_draw, {C::kPlus, C::kOtherRank}},
           {is_parameter, {C::kRoll, C::kReverse, C::kNegate}, Where::kEither, When::kFirst}}};
}
ClassOfRecipes m9() {
  return {{"M9", "a stale buffer or a missing wait"},
          {{[](const Site& s) { return is_value(s) || is_piece(s); }, {C::kOld}},
           {is_view, {C::kOld}},
           {is_buffer, {C::kOld, C::kOtherRank, C::kZero}},
           {is_whole_number, {C::kOtherRank, C::kRoll}},
           {is_batch, {C::kOld}, Where::kAll}}};
}
ClassOfRecipes m10() {
  return {{"M10", "gradients reduced too early, twice or not"},
          {{[](const Site& s) { return s.id.op == "reduce_gradients"; }, {C::kZero, C::kOld, C::kTimes}},
           {is_gradient, {C::kZero, C::kOld, C::kTimes}}}};
}
ClassOfRecipes m11() {
  return {{"M11", "accumulated in a smaller type"},
          {{[](const Site& s) { return is_float(s) && (s.is_reduction || s.kind == Kind::kOp); }, {C::kRounded}},
           {[](const Site& s) { return is_piece(s) && is_part_of_sum(s); }, {C::kRounded}},
           {is_gradient, {C::kRounded}}}};
}
ClassOfRecipes m12() {
  return {{"M12", "a local normaliser"},
          {{[](const Site& s) { return is_value(s) && s.id.phase == Phase::kInit && !s.is_float; },
            {C::kZero, C::kTimes, C::kPlus, C::kOtherRank, C::kElement}},
           {is_normaliser, {C::kTimes, C::kPlus}}}};
}
ClassOfRecipes m13() {
  const Changes changes{C::kTimes, C::kZero, C::kOld, C::kPlus, C::kRoll, C::kElement};
  const Changes of_loads{C::kZero, C::kTimes, C::kRoll, C::kElement};
  return {
      {"M13", "state out of step: between steps, at the start, at the end, behind a checkpoint; rates"},
      {{is_state, changes, Where::kEither, When::kBetween},
       {is_number, changes, Where::kAll},
       {is_state, of_loads, Where::kEither, When::kResumed},
       {is_slot, {C::kZero}, Where::kAll, When::kResumed},
       {is_parameter, {C::kTimes, C::kElement, C::kZero}, Where::kEither, When::kFirst},
       {is_state, of_loads, Where::kEither, When::kEnd},
       {is_saved, {C::kZero, C::kTimes, C::kLastRow}, Where::kAll, When::kResumed},
       {is_metadata, {C::kPlus}, Where::kAll, When::kResumed},
       {is_rate, {C::kTimes, C::kOld, C::kPlus, C::kZero}, Where::kAll},
       {[](const Site& s) { return is_argument(s) && s.id.phase == Phase::kOptimizer; }, {C::kTimes}, Where::kOne}}};
}
ClassOfRecipes m14() {
  return {
      {"M14", "a recomputation that differs"},
      {{[](const Site& s) { return in(s, Phase::kRecompute) && s.is_float; }, {C::kTimes, C::kRoll, C::kOld, C::kZero}},
       {[](const Site& s) { return is_draw(s) && s.id.phase == Phase::kRecompute; }, {C::kPlus, C::kOtherRank}}}};
}
ClassOfRecipes m15() {
  return {{"M15", "forward right, backward wrong"},
          {{[](const Site& s) { return in(s, Phase::kBackward) && s.is_float; },
            {C::kTimes, C::kNegate, C::kRoll, C::kZero},
            Where::kAll},
           {[](const Site& s) { return is_buffer(s) && s.id.phase == Phase::kBackward; }, {C::kZero, C::kRoll}}}};
}
ClassOfRecipes m16() {
  return {{"M16", "a norm that counts too much or too little, a clip of one rank"},
          {{[](const Site& s) { return in(s, Phase::kClip) || (is_piece(s) && s.id.phase == Phase::kClip); },
            {C::kTimes, C::kZero, C::kOld, C::kPlus, C::kElement}},
           {is_clip_scale, {C::kTimes, C::kPlus}, Where::kOne},
           {[](const Site& s) { return is_number(s) && s.tensor == "gradient_scale"; },
            {C::kTimes, C::kOld},
            Where::kAll}}};
}
ClassOfRecipes m17() {
  const auto is_uneven = [](const Site& s) { return is_value(s) && s.is_uneven; };
  return {{"M17", "uneven shards, padding"},
          {{is_uneven, {C::kLastRow, C::kRoll}},
           {[](const Site& s) { return is_view(s) && s.is_uneven; }, {C::kLastRow, C::kRoll}}}};
}
ClassOfRecipes m18() {
  return {
      {"M18", "a flipped bit"},
      {{[](const Site& s) { return is_value(s) || is_piece(s) || is_state(s) || is_view(s); }, {C::kBit}, Where::kOne},
       {is_gradient, {C::kBit}, Where::kOne},
       {is_saved, {C::kBit}, Where::kAll, When::kResumed}}};
}
ClassOfRecipes m19() {
  return {{"M19", "an axis of one rank"},
          {{[](const Site& s) { return is_of(s, Kind::kMove) && s.axis_size == 1; },
            {C::kTimes, C::kZero, C::kOld, C::kRoll}}}};
}
ClassOfRecipes m20() {
  return {{"M20", "what was cached for another call"},
          {{[](const Site& s) { return is_of(s, Kind::kOp) || is_number(s); }, {C::kOld}, Where::kAll},
           {is_batch, {C::kOld}, Where::kAll}}};
}

bool is_in(const Site& site, const char* part) { return site.id.module.find(part) != std::string::npos; }
bool is_of_experts(const Site& site) { return site.id.op.starts_with("mesh::expert_"); }
bool is_of_router(const Site& site) { return is_in(site, ".moe.router"); }
ClassOfRecipes m21() {
  const auto counts = [](const Site& s) {
    return s.id.op == "expert_counts" || (is_value(s) && !s.is_float && (is_of_router(s) || is_in(s, "expert_bias")));
  };
  const auto rows = [](const Site& s) {
    return (is_of(s, Kind::kOp) && is_of_experts(s)) || (is_in(s, ".moe") && s.collective == "all_to_all");
  };
  const auto slots = [](const Site& s) { return is_whole_number(s) && is_of_experts(s); };
  const auto scales = [](const Site& s) {
    return (is_gradient(s) && s.tensor.find(".moe.") != std::string::npos) || (is_float(s) && is_in(s, ".moe"));
  };
  const auto biases = [](const Site& s) { return is_state(s) && s.tensor.ends_with("expert_bias"); };
  return {{"M21", "experts: counts, permutation, slots, scaling, balancing"},
          {{counts, {C::kTimes, C::kRoll, C::kZero, C::kElement, C::kOtherRank}},
           {rows, {C::kRoll, C::kReverse, C::kOtherRank, C::kLastRow}},
           {slots, {C::kRoll, C::kReverse, C::kElement, C::kOtherRank}},
           {scales, {C::kTimes}},
           {biases, {C::kPlus, C::kTimes, C::kRoll, C::kZero}, Where::kEither, When::kBetween},
           {[](const Site& s) { return is_float(s) && is_in(s, "expert_bias"); }, {C::kTimes, C::kNegate, C::kOld}}}};
}

}  // namespace

const std::vector<ClassOfRecipes>& classes_of_recipes() {
  static const std::vector<ClassOfRecipes> all{m1(),  m2(),  m3(),  m4(),  m5(),  m6(),  m7(),
                                               m8(),  m9(),  m10(), m11(), m12(), m13(), m14(),
                                               m15(), m16(), m17(), m18(), m19(), m20(), m21()};
  return all;
}

std::span<const MutantClass> mutant_classes() {
  static const auto names = [] {
    std::vector<MutantClass> all;
    for (const auto& one : classes_of_recipes()) all.push_back(one.name);
    return all;
  }();
  return names;
}

}  // namespace lockstep::trainer
