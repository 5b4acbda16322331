#include <nlohmann/json.hpp>

#include "tools/bench/step_profile.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/json_output.h"

namespace lockstep::tool {
namespace {

using bench::OpCost;
using bench::StepProfile;

double seconds_of_ops(const StepProfile& profile) {
  double seconds = 0;
  for (const auto& op : profile.ops) seconds += op.seconds;
  return seconds;
}

double flops_of(const StepProfile& profile, bool products_only) {
  double flops = 0;
  for (const auto& op : profile.ops)
    if (!products_only || op.op.find("attention") == std::string::npos) flops += op.flops;
  return flops;
}

/// Operations a second in the whole step, as a share of those of its products alone.
double share_of_products(const StepProfile& profile) {
  const double alone = flops_of(profile, true) / profile.product_seconds_alone;
  return flops_of(profile, false) / profile.step_seconds / alone;
}

std::string share(double part, double whole) { return part > 0 ? fmt::format("{:.0f} %", 100 * part / whole) : "-"; }

void print_op(const OpCost& op, const StepProfile& profile) {
  print_out("{:<28} {:>5.0f} {:>8.3f} {:>7} {:>8.1f} {:>8} {:>8}  {}\n", op.op, op.calls, 1e3 * op.seconds,
            share(op.seconds, profile.step_seconds), op.bytes / 1e6,
            share(op.flops / op.seconds, profile.limits.flops_per_second),
            op.bytes > 0 ? share(op.bytes / op.seconds, profile.limits.bytes_per_second) : "-", op.sizes);
}

void print_table(const StepProfile& profile) {
  print_out("{:<28} {:>5} {:>8} {:>7} {:>8} {:>8} {:>8}  {}\n", "op", "calls", "ms", "step", "MB", "of peak", "of copy",
            "operands");
  double others = 0;
  for (const auto& op : profile.ops) {
    if (op.seconds < 0.002 * profile.step_seconds)
      others += op.seconds;
    else
      print_op(op, profile);
  }
  const double left = profile.step_seconds - seconds_of_ops(profile);
  print_out("{:<28} {:>5} {:>8.3f} {:>7}\n", "ops below 0.2 % each", "", 1e3 * others,
            share(others, profile.step_seconds));
  print_out("{:<28} {:>5} {:>8.3f} {:>7}\n\n", "outside of ops", "", 1e3 * left, share(left, profile.step_seconds));
  print_out("step      {:.1f} ms, {:.1f} GFLOP/s with attention: {:.0f} % of the speed of its products alone\n",
            1e3 * profile.step_seconds, 1e-9 * flops_of(profile, false) / profile.step_seconds,
            100 * share_of_products(profile));
  print_out("products  {:.1f} ms in the step, {:.1f} ms alone, {:.1f} GFLOP/s\n", 1e3 * profile.product_seconds,
            1e3 * profile.product_seconds_alone, 1e-9 * flops_of(profile, true) / profile.product_seconds_alone);
  print_out("memory    {:.0f} page faults in a step\n", profile.page_faults);
  print_out("machine   {:.1f} GFLOP/s in a large product, {:.1f} GB/s in a large copy (read and written), one thread\n",
            1e-9 * profile.limits.flops_per_second, 1e-9 * profile.limits.bytes_per_second);
}

nlohmann::ordered_json json_of(const StepProfile& profile) {
  auto ops = nlohmann::ordered_json::array();
  for (const auto& op : profile.ops)
    ops.push_back({{"op", op.op},
                   {"operands", op.sizes},
                   {"calls", op.calls},
                   {"seconds", op.seconds},
                   {"bytes", op.bytes},
                   {"flops", op.flops}});
  return {{"step_seconds", profile.step_seconds},
          {"page_faults", profile.page_faults},
          {"product_seconds", profile.product_seconds},
          {"product_seconds_alone", profile.product_seconds_alone},
          {"share_of_products", share_of_products(profile)},
          {"flops_per_second", profile.limits.flops_per_second},
          {"bytes_per_second", profile.limits.bytes_per_second},
          {"ops", ops}};
}

}  // namespace

ExitCode print_profile(const Output& output) {
  const auto profile = bench::profile_step();
  print_table(profile);
  write_json(output, json_of(profile));
  return ExitCode::kFine;
}

}  // namespace lockstep::tool
