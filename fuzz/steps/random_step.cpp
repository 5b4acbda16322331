#include "fuzz/steps/random_step.h"

#include <fmt/format.h>
#include <rapidcheck.h>

#include <map>

#include "core/error.h"
#include "fuzz/cases/drawn.h"
#include "fuzz/trials/rule_properties.h"
#include "trainer/job/batching.h"
#include "trainer/job/expert_degrees.h"
#include "trainer/job/job_file.h"
#include "trainer/optim/schedule.h"
#include "trainer/verify/mesh_comparison.h"
#include "trainer/verify/odd_shapes.h"
#include "trainer/verify/suite_batch.h"

namespace lockstep::fuzz {
namespace {

using testing::drawn;

constexpr int64_t kMostRanks = 16;
constexpr int64_t kSteps = 2;  ///< the second has an optimizer's state

trainer::MeshDegrees draw_mesh(bool has_experts) {
  trainer::MeshDegrees mesh;
  for (const auto& axis : trainer::MeshDegrees::axes()) {
    if (axis.name == trainer::axis::kPipeline) continue;  // not offered
    const auto size = drawn(*rc::gen::element<int64_t>(1, 2, 1, 2, 3, 4));
    if (mesh.ranks() * size <= kMostRanks) mesh.*axis.size = size;
  }
  if (has_experts && drawn(*rc::gen::arbitrary<bool>())) mesh.etp = mesh.tp;
  if (has_experts) mesh.ep = drawn(*rc::gen::elementOf(trainer::expert_degrees(mesh)));
  return mesh;
}

trainer::Job draw_job(const std::string& model, bool canonical) {
  const auto* optimizer = *rc::gen::element(
      "name = \"AdamW\"", "name = \"SGD\"", "name = \"SGD\"\nmomentum = 0.9\nnesterov = true", "name = \"Adam\"",
      "name = \"Muon\"\nema_decay = 0.5", "name = \"Ranger21\"\n[ranger21]\nlinear_warmup = false");
  const auto text = fmt::format(
      "[model]\nname = \"{}\"\n[optimizer]\n{}\n[training]\nlocal_batch_size = 2\nglobal_batch_size = 12\nsteps = 2\n"
      "[numerics]\nmode = \"{}\"\n[lr_scheduler]\nwarmup_steps = 1\n",
      model, optimizer, canonical ? "canonical" : "native");
  return trainer::resolve(trainer::parse_job(text, "a random job"), trainer::Launch{});
}

/// What differs, and in which step; "" if nothing does.
std::string difference_of(const trainer::Job& job, const trainer::MeshDegrees& mesh,
                          const std::shared_ptr<const RuleSet>& rules) {
  trainer::TrainingRun::Options options;
  options.mesh = mesh;
  options.rules = rules;
  trainer::MeshComparison comparison(job, options);
  const trainer::LearningRateSchedule schedule(job);
  const auto vocabulary = comparison.candidate().model().vocabulary();
  for (int64_t step = 1; step <= kSteps; ++step) {
    const auto check =
        comparison.check(step, trainer::suite_batch(job, vocabulary, step), schedule.learning_rate(step));
    if (!check.agrees()) return fmt::format("step {}: {}", step, check.difference);
  }
  return {};
}

}  // namespace

void a_step_equals_one_devices(const std::string& model, bool canonical, std::shared_ptr<const RuleSet> rules) {
  const auto mesh = draw_mesh(model == "moe");
  auto job = draw_job(model, canonical);
  const auto shapes =
      trainer::odd_shapes(static_cast<uint64_t>(drawn(*rc::gen::inRange(0, 1 << 20))), job, std::span(&mesh, 1));
  job = trainer::with_settings(job, shapes);
  const auto line = fmt::format("{} {}, {} on {}, {}", canonical ? "canonical" : "native", model, job.optimizer.name,
                                mesh.text(), trainer::text_of(shapes));
  std::string what;
  try {
    what = difference_of(job, mesh, rules);
  } catch (const std::exception& error) {
    what = error.what();
  }
  if (!what.empty()) RC_FAIL(fmt::format("{}: {}", line, what));
  ++testing::compared_cases()["steps"];
}

}  // namespace lockstep::fuzz
