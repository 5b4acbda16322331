#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "models/families/llama_options.h"
#include "models/families/moe_options.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/json_output.h"
#include "trainer/forecast/meshes.h"

namespace lockstep::tool {
namespace {

using Json = nlohmann::ordered_json;
using trainer::forecast::Choice, trainer::forecast::ModelSizes, trainer::forecast::Hardware;
using trainer::forecast::MeshForecast, trainer::forecast::Workload;

constexpr const char* kRow = "{:<44} {:>5} {:>9} {:>6} {:>6} {:>9} {:>6} {:>9}\n";
constexpr double kGibibyte = 1 << 30, kPercent = 100;

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// A flavor and whose it is: of llama3 or, where that has none of the name, of moe; "moe/debugmodel" says it.
struct Model {
  std::string family, flavor;

  ModelSizes sizes() const {
    return family == "llama3" ? trainer::forecast::sizes_of(models::llama_flavor(flavor))
                              : trainer::forecast::sizes_of(models::moe_flavor(flavor));
  }
};

Model model_of(const std::string& text) {
  const auto llama = models::llama_flavors(), moe = models::moe_flavors();
  const auto flavor = text.substr(text.find('/') + 1), family = text.substr(0, text.size() - flavor.size());
  if (family.empty() || family == "llama3/")
    if (has(llama, flavor)) return {"llama3", flavor};
  if (family.empty() || family == "moe/")
    if (has(moe, flavor)) return {"moe", flavor};
  fail<BadInput>("--model {} is no flavor of llama3 ({}) and none of moe ({}).", text, fmt::join(llama, ", "),
                 fmt::join(moe, ", "));
}

Choice choice_of(const PlanOptions& options) {
  Choice choice{.local_batch = options.local_batch, .recompute = {}, .stages_per_rank = options.stages_per_rank};
  choice.element_bytes = options.dtype == "float32" ? 4 : 2;
  for (const auto recompute : trainer::forecast::kAllRecomputes)
    if (options.recompute == text_of(recompute)) choice.recompute = recompute;
  return choice;
}

std::vector<MeshForecast> forecasts(const PlanOptions& options, const Workload& workload, const Hardware& hardware) {
  if (options.ranks) return all_meshes(workload, *options.ranks, hardware, choice_of(options));
  return {forecast_of(workload, trainer::parse_mesh(options.mesh), hardware, choice_of(options))};
}

double tokens_per_second(const Workload& workload, const MeshForecast& mesh) {
  return static_cast<double>(workload.global_batch * workload.seq_len) / mesh.time.step();
}

void print_heading() {
  print_out(kRow, "mesh", "local", "recompute", "stages", "GiB", "s a step", "MFU %", "tokens/s");
  print_out(kRow, "", "batch", "", "a rank", "", "", "", "of a rank");
}

void print_row(const Workload& workload, const MeshForecast& mesh) {
  const auto& s = mesh.settings;
  print_out("{:<44} {:>5} {:>9} {:>6} {:>6.1f} {:>9.3f} {:>6.1f} {:>9.0f}\n", s.mesh.text(), s.local_batch,
            text_of(s.recompute), s.stages_per_rank, mesh.memory.peak / kGibibyte, mesh.time.step(),
            kPercent * mesh.mfu, tokens_per_second(workload, mesh) / static_cast<double>(s.mesh.ranks()));
}

void print_fitting(const PlanOptions& options, const Workload& workload, const std::vector<MeshForecast>& meshes) {
  const auto fit = std::ranges::count_if(meshes, &MeshForecast::fits);
  print_out("{} of {} meshes fit{}\n", fit, meshes.size(), fit > 0 ? "; the fastest of each pp, cp and tp:" : "");
  if (fit > 0) print_heading();
  std::set<std::array<int64_t, 3>> shown;
  for (const auto& each : meshes) {
    const auto& mesh = each.settings.mesh;
    if (!each.fits || static_cast<int64_t>(shown.size()) == options.rows) break;
    if (shown.insert({mesh.pp, mesh.cp, mesh.tp}).second) print_row(workload, each);
  }
}

/// How many meshes each reason is of; of memory the mesh that is closest.
void print_others(const std::vector<MeshForecast>& meshes) {
  std::map<std::string, int64_t> refused;
  const MeshForecast* closest = nullptr;
  int64_t too_large = 0;
  for (const auto& mesh : meshes) {
    if (mesh.fits) continue;
    if (mesh.is_refused())
      ++refused[mesh.why];
    else if (++too_large; !closest || mesh.memory.peak < closest->memory.peak)
      closest = &mesh;
  }
  if (closest)
    print_out("\n{} need more memory than there is, {} the least: {}\n", too_large, closest->settings.mesh.text(),
              closest->why);
  if (refused.empty()) return;
  print_out("\nNot forecast:\n");
  for (const auto& [why, count] : refused) print_out("{:>6}  {}\n", count, why);
}

void print_parts(const MeshForecast& mesh) {
  const auto& t = mesh.time;
  const auto& m = mesh.memory;
  print_out(
      "\nseconds: computing {:.3f}, tp {:.3f}, cp {:.3f}, ep {:.3f}, between stages {:.3f}, bubble {:.3f}, data "
      "parallel {:.3f}, "
      "optimizer {:.3f}\n",
      t.computing, t.tensor, t.context, t.experts, t.transfers, t.bubble, t.data, t.optimizer);
  print_out("GiB: state {:.1f}, gradients {:.1f}, gathered {:.1f}, activations {:.1f}, logits {:.1f}\n",
            m.state / kGibibyte, m.gradients / kGibibyte, m.gathered / kGibibyte, m.activations / kGibibyte,
            m.logits / kGibibyte);
  if (!mesh.why.empty()) print_out("does not fit: {}\n", mesh.why);
}

Json parts_json(const MeshForecast& mesh) {
  const auto& t = mesh.time;
  return {{"computing", t.computing}, {"tp", t.tensor},     {"cp", t.context},         {"ep", t.experts},
          {"transfers", t.transfers}, {"bubble", t.bubble}, {"data_parallel", t.data}, {"optimizer", t.optimizer}};
}

Json mesh_json(const Workload& workload, const MeshForecast& mesh) {
  const auto& s = mesh.settings;
  Json row{{"mesh", s.mesh.text()},   {"fits", mesh.fits}, {"memory", nullptr},
           {"step_seconds", nullptr}, {"mfu", nullptr},    {"why", mesh.why}};
  if (mesh.is_refused()) return row;
  row["memory"] = mesh.memory.peak, row["step_seconds"] = mesh.time.step(), row["mfu"] = mesh.mfu;
  row["tokens_per_second"] = tokens_per_second(workload, mesh);
  row["local_batch_size"] = s.local_batch, row["recompute"] = text_of(s.recompute);
  row["stages_per_rank"] = s.stages_per_rank, row["seconds"] = parts_json(mesh);
  return row;
}

void write_result(const PlanOptions& options, const Workload& workload, const std::vector<MeshForecast>& meshes) {
  Json result{{"model", options.model},      {"family", model_of(options.model).family},
              {"dtype", options.dtype},      {"hardware", options.hardware},
              {"seq_len", workload.seq_len}, {"global_batch_size", workload.global_batch},
              {"meshes", Json::array()}};
  for (const auto& mesh : meshes) result["meshes"].push_back(mesh_json(workload, mesh));
  write_json(options.output, result);
}

}  // namespace

ExitCode run_plan(const PlanOptions& options) {
  const auto hardware = trainer::forecast::hardware_of(options.hardware);
  const auto model = model_of(options.model);
  const Workload workload{model.sizes(), options.seq_len, options.batch};
  const auto meshes = forecasts(options, workload, hardware);
  write_result(options, workload, meshes);
  if (!options.ranks && meshes[0].is_refused()) fail<BadInput>("{}.", meshes[0].why);
  if (!options.output.quiet)
    print_out("{} {}, {} sequences of {} tokens a step, {}, on {}: forecasts, nothing was run (docs/scale.md)\n",
              model.family, model.flavor, options.batch, options.seq_len, options.dtype, hardware.name);
  if (!options.ranks) {
    print_heading();
    print_row(workload, meshes[0]);
    print_parts(meshes[0]);
    return ExitCode::kFine;
  }
  print_fitting(options, workload, meshes);
  print_others(meshes);
  return ExitCode::kFine;
}

}  // namespace lockstep::tool
