#include "tools/lockstep/reports/page/mesh_section.h"

#include <fmt/format.h>

#include <algorithm>

#include "replay/view/html.h"
#include "replay/view/page_parts.h"
#include "tools/lockstep/reports/page/differences.h"
#include "tools/lockstep/reports/page/divergence_plot.h"

namespace lockstep::tool {
namespace {

using replay::bars;
using replay::bytes_text;
using replay::cell;
using replay::count_text;
using replay::escaped;
using replay::table;

std::string state_text(const PageMesh& mesh) {
  if (mesh.most_state <= 0) return "-";
  const auto most = bytes_text(mesh.most_state), least = bytes_text(mesh.least_state);
  return least == most ? most : fmt::format("{} to {}", least, most);
}

/// A mesh of which no step is compared yet has no verdict.
const char* verdict_of(const PageMesh& mesh) {
  if (!mesh.agrees) return "differs";
  return mesh.steps.empty() ? "not compared yet" : "agrees";
}

std::string marked_verdict(const PageMesh& mesh) {
  if (mesh.agrees && mesh.steps.empty()) return verdict_of(mesh);
  return fmt::format("<span class=\"{}\">{} {}</span>", mesh.agrees ? "good" : "bad",
                     mesh.agrees ? "&#10003;" : "&#10007;", verdict_of(mesh));
}

std::string mesh_row(const PageMesh& mesh, bool bits) {
  const auto worst = mesh.worst();
  auto row = fmt::format("<tr>{}{}", cell("mesh", escaped(mesh.mesh)), cell("verdict", marked_verdict(mesh)));
  row += cell("steps", count_text(static_cast<int64_t>(mesh.steps.size())));
  row += cell("loss", relative_text(worst.loss)) + cell("gradients", relative_text(worst.gradient)) +
         cell("parameters", relative_text(worst.parameter));
  if (bits) row += cell("differing bits", count_text(worst.differing_bits));
  row += cell("sent a step", bytes_text(mesh.bytes)) +
         cell("time", mesh.ratio > 0 ? fmt::format("{:.2f}x", mesh.ratio) : "-");
  return row + cell("state on a rank", state_text(mesh)) + "</tr>\n";
}

PlotLine line_of(const PageMesh& mesh, const char* name, double PageStep::*value) {
  PlotLine line{name, {}};
  for (const auto& step : mesh.steps) line.points.emplace_back(step.step, step.*value);
  return line;
}

/// Of one mesh among many, a line along the floor would say less than a sentence.
std::string plot(const PageMesh& mesh, const VerifyPage& page) {
  if (mesh.steps.empty()) return {};
  if (page.planned > 1 && mesh.worst().worst() <= 0)
    return "<p>Loss, gradients, parameters and optimizer state are equal at every step.</p>\n";
  const PlotLine lines[] = {line_of(mesh, "loss", &PageStep::loss), line_of(mesh, "gradients", &PageStep::gradient),
                            line_of(mesh, "parameters and optimizer state", &PageStep::parameter)};
  return divergence_plot(lines, page.tolerance);
}

/// Canonical bytes over native ones.
std::string ratio_text(double bytes, double native) {
  return native > 0 ? fmt::format("{:.2f}x", bytes / native) : "-";
}

std::string traffic_row(const PageTraffic& traffic, double most) {
  const auto length = [&](double bytes) { return most > 0 ? bytes / most : 0; };
  auto row = fmt::format("<tr>{}", cell("collective", escaped(traffic.collective + " on " + traffic.axis)));
  row += cell("", bars(length(traffic.bytes), traffic.native_bytes ? length(*traffic.native_bytes) : -1));
  row += cell("times", count_text(traffic.count)) + cell("sent", bytes_text(traffic.bytes));
  if (traffic.native_bytes)
    row += cell("native", bytes_text(*traffic.native_bytes)) +
           cell("ratio", ratio_text(traffic.bytes, *traffic.native_bytes));
  return row + "</tr>\n";
}

/// Whether a dry run has told what the mesh sends and holds.
bool is_counted(const PageMesh& mesh) { return mesh.most_state > 0; }

std::string traffic_table(const PageMesh& mesh) {
  double most = 0;
  bool has_native = false;
  for (const auto& traffic : mesh.traffic) {
    most = std::max({most, traffic.bytes, traffic.native_bytes.value_or(0)});
    has_native |= traffic.native_bytes.has_value();
  }
  std::string rows;
  for (const auto& traffic : mesh.traffic) rows += traffic_row(traffic, most);
  if (rows.empty()) return is_counted(mesh) && mesh.bytes <= 0 ? "<p>Nothing is sent.</p>\n" : "";
  const std::string title = "<h4>What a rank sends in a step</h4>\n";
  if (!has_native) return title + table({"collective", "", "times", "sent"}, rows);
  return title +
         "<p class=\"legend\"><span><i class=\"key bar1\"></i>canonical</span><span><i class=\"key bar2\"></i>native"
         "</span></p>\n" +
         table({"collective", "", "times", "sent", "native", "ratio"}, rows);
}

std::string gathered(const PageMesh& mesh) {
  if (mesh.gathered.empty()) return {};
  std::string html = "<h4>Gathered, as no rule serves the operand as it lies</h4>\n<ul>\n";
  for (const auto& reason : mesh.gathered) html += fmt::format("<li>{}</li>\n", escaped(reason));
  return html + "</ul>\n";
}

std::string memory(const PageMesh& mesh) {
  std::string html;
  if (mesh.most_state > 0)
    html += fmt::format("<p>A rank holds {} of parameters and optimizer state.", state_text(mesh));
  if (mesh.resident > 0)
    html += fmt::format("{}This process, with all that it compares, held {} in the end.", html.empty() ? "<p>" : " ",
                        bytes_text(mesh.resident));
  return html.empty() ? html : html + "</p>\n";
}

std::string section(const PageMesh& mesh, const VerifyPage& page) {
  const bool is_open = !mesh.agrees || page.planned == 1;
  return fmt::format(
      "<details class=\"card {}\"{}><summary><strong>{}</strong> {}</summary>\n<div "
      "class=\"pair\"><div>\n{}</div><div>\n{}{}{}</div></div></details>\n",
      mesh.agrees ? "good" : "bad", is_open ? " open=\"open\"" : "", escaped(mesh.mesh), verdict_of(mesh),
      plot(mesh, page), traffic_table(mesh), gathered(mesh), memory(mesh));
}

}  // namespace

std::string meshes_table(const VerifyPage& page) {
  std::string rows;
  for (const auto& mesh : page.meshes) rows += mesh_row(mesh, page.compares_bits());
  const std::string title =
      "<h2>Meshes</h2>\n<p class=\"quiet\">Loss, gradients, parameters: the worst relative difference of all steps. "
      "Time: "
      "of a step on the mesh, over one device's.</p>\n";
  if (page.compares_bits())
    return title + table({"mesh", "verdict", "steps", "loss", "gradients", "parameters", "differing bits",
                          "sent a step", "time", "state on a rank"},
                         rows);
  return title + table({"mesh", "verdict", "steps", "loss", "gradients", "parameters", "sent a step", "time",
                        "state on a rank"},
                       rows);
}

std::string mesh_sections(const VerifyPage& page) {
  std::string html = "<h2>Mesh by mesh</h2>\n";
  for (const auto& mesh : page.meshes) html += section(mesh, page);
  return html;
}

}  // namespace lockstep::tool
