#include "runtime/tensor/layout.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "core/error.h"

namespace lockstep {
namespace {

constexpr const char* kReductionNames[] = {"sum", "avg", "max", "min", "prod"};

/// Depths of every cut dimension are 0, 1, ... in some order.
bool depths_are_sound(const Placements& placements) {
  for (size_t a = 0; a < placements.size(); ++a) {
    if (placements[a].cuts() == Placement::kNothing) continue;
    int cutters = 0, same_depth = 0;
    for (const auto& other : placements) {
      if (other.cuts() != placements[a].cuts()) continue;
      ++cutters;
      same_depth += other.depth == placements[a].depth;
    }
    if (same_depth != 1 || placements[a].depth >= cutters) return false;
  }
  return true;
}

bool follows_mesh_order(const Placements& placements, int what) {
  uint8_t expected = 0;
  for (const auto& placement : placements)
    if (placement.cuts() == what && placement.depth != expected++) return false;
  return true;
}

std::string unit_text(const Placement& placement) {
  return placement.unit == 1 ? "" : fmt::format(":{}", placement.unit);
}

std::string sum_text(const Placement& placement) {
  auto text = fmt::format("sum:{}/{}", placement.summands, placement.leaf);
  if (placement.terms > 1) text += fmt::format("+{}", placement.terms);
  if (placement.rounded_levels > 0) text += fmt::format("~{}", placement.rounded_levels);
  return text;
}

std::string placement_text(const Placements& placements, const Placement& placement) {
  if (placement.is_replicate()) return "R";
  if (placement.is_partial() && !placement.is_ordered()) return fmt::format("P({})", to_text(placement.reduction));
  const char kind = placement.of_cells ? 'G' : 'S';
  std::string text = placement.is_shard() ? fmt::format("{}({}{})", kind, placement.dim, unit_text(placement))
                                          : fmt::format("P({}{})", sum_text(placement), unit_text(placement));
  if (!follows_mesh_order(placements, placement.cuts())) text += fmt::format("@{}", placement.depth);
  return text;
}

bool is_same_sum(const Placement& a, const Placement& b) {
  const auto constants = [](const Placement& p) { return std::tuple(p.summands, p.leaf, p.terms, p.rounded_levels); };
  return constants(a) == constants(b);
}

/// A reader of one layout text; every complaint shows the whole text.
class Parser {
 public:
  explicit Parser(std::string_view text) : whole_(text), rest_(text) {}

  void expect(char c) {
    if (!accept(c)) complain(fmt::format("expected '{}'", c));
  }
  bool accept(char c) {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view word() {
    accept(' ');
    size_t n = 0;
    while (n < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[n])) || rest_[n] == '_')) ++n;
    const auto word = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return word;
  }
  int64_t number() {
    const auto digits = word();
    if (digits.empty() || digits.size() > 15 || !std::all_of(digits.begin(), digits.end(), ::isdigit))
      complain("expected a number");
    return std::stoll(std::string(digits));
  }
  [[noreturn]] void complain(const std::string& what) const {
    fail<BadInput>("layout '{}': {} at '{}'; expected for example [dp_shard=S(0), tp=P(sum)]", whole_, what, rest_);
  }
  bool at_end() { return !accept(' ') && rest_.empty(); }

 private:
  std::string_view whole_, rest_;
};

Reduction parse_reduction(Parser& parser) {
  const auto name = parser.word();
  for (size_t i = 0; i < std::size(kReductionNames); ++i)
    if (name == kReductionNames[i]) return static_cast<Reduction>(i);
  parser.complain("expected sum, avg, max, min or prod");
}

Placement parse_partial(Parser& parser) {
  const auto reduction = parse_reduction(parser);
  if (reduction != Reduction::kSum || !parser.accept(':')) return Placement::partial(reduction);
  const int64_t summands = parser.number();
  parser.expect('/');
  const int64_t leaf = parser.number();
  const int64_t terms = parser.accept('+') ? parser.number() : 1;
  const int64_t rounded_levels = parser.accept('~') ? parser.number() : 0;
  if (summands < 1 || leaf < 1) parser.complain("an ordered sum has summands in leaves of at least 1");
  if (terms < 1 || terms > Placement::kMostTerms)
    parser.complain(fmt::format("a formal sum has 1 to {} terms", Placement::kMostTerms));
  auto placement = Placement::ordered_sum(summands, leaf);
  placement.terms = terms;
  placement.rounded_levels = rounded_levels;
  return placement;
}

/// `told`: what is cut in an order that the text says.
Placement parse_placement(Parser& parser, std::set<int>& told) {
  const auto kind = parser.word();
  if (kind == "R") return Placement::replicate();
  if (kind != "S" && kind != "G" && kind != "P") parser.complain("expected R, S, G or P");
  parser.expect('(');
  auto placement = kind == "P" ? parse_partial(parser) : Placement::shard(static_cast<int>(parser.number()));
  placement.of_cells = kind == "G";
  const bool is_cut = placement.cuts() != Placement::kNothing;
  if (is_cut && parser.accept(':')) placement.unit = parser.number();
  if (placement.unit < 1) parser.complain("a unit is at least 1");
  parser.expect(')');
  if (is_cut && parser.accept('@')) {
    placement.depth = static_cast<uint8_t>(parser.number());
    told.insert(placement.cuts());
  }
  return placement;
}

}  // namespace

const char* to_text(Reduction reduction) { return kReductionNames[static_cast<size_t>(reduction)]; }

Placements with_mesh_order(Placements placements) {
  for (size_t a = 0; a < placements.size(); ++a) {
    if (placements[a].cuts() == Placement::kNothing) continue;
    placements[a].depth = static_cast<uint8_t>(
        std::count_if(placements.begin(), placements.begin() + static_cast<ptrdiff_t>(a),
                      [&](const Placement& earlier) { return earlier.cuts() == placements[a].cuts(); }));
  }
  return placements;
}

Layout::Layout(const Mesh& mesh, Placements placements) : mesh_(&mesh), placements_(std::move(placements)) {
  if (axis_count() != mesh.axis_count())
    fail<BadInput>("a layout of mesh {} needs {} placements, got {}", mesh.text(), mesh.axis_count(), axis_count());
  const bool no_depths = std::all_of(placements_.begin(), placements_.end(), [](auto& p) { return p.depth == 0; });
  if (no_depths) placements_ = with_mesh_order(placements_);
  if (!depths_are_sound(placements_))
    fail<BadInput>("the axes that cut one dimension should have depths 0, 1, ... (mesh {})", mesh.text());
  if (mixes_reductions()) fail<BadInput>("layout {}: only sums and averages may be Partial side by side", text());
  const auto* sum = ordered_sum();
  for (const auto& p : placements_)
    if (p.is_ordered() && !is_same_sum(p, *sum))
      fail<BadInput>("layout {}: the axes cut two different ordered sums; only one may be pending", text());
}

Layout Layout::replicated(const Mesh& mesh) {
  return Layout(mesh, Placements(static_cast<size_t>(mesh.axis_count()), Placement::replicate()));
}

Layout Layout::parse(const Mesh& mesh, std::string_view text) {
  Parser parser(text);
  Placements placements(static_cast<size_t>(mesh.axis_count()), Placement::replicate());
  std::set<int> told;
  parser.expect('[');
  if (!parser.accept(']')) {
    do {
      const auto name = parser.word();
      const int axis = mesh.find_axis(name);
      if (axis < 0) parser.complain(fmt::format("mesh {} has no axis '{}'", mesh.text(), name));
      parser.expect('=');
      placements[static_cast<size_t>(axis)] = parse_placement(parser, told);
    } while (parser.accept(','));
    parser.expect(']');
  }
  if (!parser.at_end()) parser.complain("expected the end");
  const auto in_mesh_order = with_mesh_order(placements);
  for (size_t a = 0; a < placements.size(); ++a)
    if (!told.contains(placements[a].cuts())) placements[a].depth = in_mesh_order[a].depth;
  return Layout(mesh, std::move(placements));
}

bool Layout::all_replicate() const {
  return std::all_of(placements_.begin(), placements_.end(), [](auto& p) { return p.is_replicate(); });
}

bool Layout::any_partial() const {
  return std::any_of(placements_.begin(), placements_.end(), [](auto& p) { return p.is_partial(); });
}

bool Layout::mixes_reductions() const {
  const auto kind = [](Reduction reduction) { return reduction == Reduction::kAvg ? Reduction::kSum : reduction; };
  const Placement* first = nullptr;
  for (const auto& placement : placements_) {
    if (!placement.is_partial()) continue;
    if (first && kind(first->reduction) != kind(placement.reduction)) return true;
    first = &placement;
  }
  return false;
}

c10::SmallVector<int, 4> Layout::cutters(int what) const {
  c10::SmallVector<int, 4> axes;
  for (int depth = 0; depth < axis_count(); ++depth)
    for (int axis = 0; axis < axis_count(); ++axis)
      if ((*this)[axis].cuts() == what && (*this)[axis].depth == depth) axes.push_back(axis);
  return axes;
}

Range Layout::cut(int rank, int what, int64_t size) const {
  Range range{0, size};
  for (const int axis : cutters(what)) {
    const int64_t unit = (*this)[axis].unit, ranks = mesh_->axis_size(axis);
    const int64_t units = (range.length + unit - 1) / unit;
    const int64_t chunk = (units + ranks - 1) / ranks * unit;
    const int64_t offset = std::min(mesh_->coordinate(rank, axis) * chunk, range.length);
    range = {range.start + offset, std::min(chunk, range.length - offset)};
  }
  return range;
}

Layout Layout::with(int axis, const Placement& placement) const {
  Layout result = *this;
  auto& mine = result.placements_[static_cast<size_t>(axis)];
  if (mine.cuts() != Placement::kNothing)
    for (auto& other : result.placements_)
      if (other.cuts() == mine.cuts() && other.depth > mine.depth) --other.depth;
  mine = Placement::replicate();
  const auto depth = result.cutters(placement.cuts()).size();
  mine = placement;
  if (placement.cuts() != Placement::kNothing) mine.depth = static_cast<uint8_t>(depth);
  return result;
}

const Placement* Layout::ordered_sum() const {
  for (const auto& placement : placements_)
    if (placement.is_ordered()) return &placement;
  return nullptr;
}

Range Layout::summands(int rank) const { return cut(rank, Placement::kSummands, ordered_sum()->summands); }

std::string Layout::text() const {
  std::string text = "[";
  for (int axis = 0; axis < axis_count(); ++axis)
    text += fmt::format("{}{}={}", axis ? ", " : "", mesh_->axes()[static_cast<size_t>(axis)].name,
                        placement_text(placements_, (*this)[axis]));
  return text + "]";
}

}  // namespace lockstep
