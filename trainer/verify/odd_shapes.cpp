#include "trainer/verify/odd_shapes.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "core/error.h"
#include "trainer/job/batching.h"
#include "trainer/job/expert_degrees.h"
#include "trainer/job/job_file.h"
#include "trainer/job/job_keys.h"
#include "trainer/job/offered_names.h"
#include "trainer/names/registry.h"

namespace lockstep::trainer {
namespace {

/// Settings as they are drawn. The standard leaves open how its distributions draw: remainders are the same everywhere.
class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed * 1000003 + 1) {}

  int64_t between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  template <class T>
  T one_of(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(between(0, static_cast<int64_t>(choices.size()) - 1))];
  }
  bool coin() { return between(0, 1) == 0; }

  void set(const char* key, const std::string& value) { settings.push_back(command_line_setting(key, value)); }
  void set(const char* key, int64_t value) { set(key, std::to_string(value)); }
  bool is(std::string_view key, std::string_view value) const {
    return std::ranges::any_of(settings, [&](const auto& each) { return each.key == key && each.written == value; });
  }

  std::vector<Setting> settings;

 private:
  std::mt19937_64 random_;
};

int64_t ceil_divide(int64_t size, int64_t parts) { return (size + parts - 1) / parts; }

/// How many heads, and elements of each. Heads are cut between leaves of the sums over them (sum_tree.h) where their
/// number is a power of two and there are some leaves of 32 elements; other numbers go round as a whole.
struct Heads {
  int64_t count, size;
};

Heads draw_heads(Draw& draw, int64_t unit) {
  if (draw.coin()) {
    const auto count = draw.one_of<int64_t>({2, 4, 8});
    return {count, unit * draw.between(ceil_divide(64, count * unit), ceil_divide(152, count * unit))};
  }
  const auto count = draw.between(1, 7);
  return {count, unit * draw.between(1, 18 / unit)};
}

/// Rotations turn pairs: heads are even.
void draw_llama(Draw& draw) {
  const auto heads = draw_heads(draw, 2);
  const auto queries = draw.between(1, 3);
  draw.set("model.width", heads.count * queries * heads.size);
  draw.set("model.heads", heads.count * queries);
  draw.set("model.key_value_heads", heads.count);
  draw.set("model.hidden", heads.count * draw.between(1, 40));
}

void draw_gpt2(Draw& draw) {
  const auto heads = draw_heads(draw, 1);
  draw.set("model.width", heads.count * heads.size);
  draw.set("model.heads", heads.count);
  draw.set("model.hidden", draw.between(1, 160));
}

void draw_mlp(Draw& draw) {
  draw.set("model.width", draw.between(1, 130));
  draw.set("model.hidden", draw.between(1, 160));
}

/// Experts of a few hidden units, or of some leaves; of tokens some have no expert that has room.
void draw_moe(Draw& draw) {
  draw_llama(draw);
  const auto groups = draw.between(1, 3), size = draw.between(2, 4);
  draw.set("model.experts.groups", groups);
  draw.set("model.experts.count", groups * size);
  draw.set("model.experts.groups_per_token", draw.between(1, groups));
  const auto per_token = draw.between(1, 2);
  draw.set("model.experts.per_token", per_token);
  draw.set("model.experts.normalized",
           per_token > 1 ? "true" : "false");  // one weight of 1 has no gradient but rounding
  draw.set("model.experts.hidden", draw.between(1, 150));
  draw.set("model.experts.shared", 0);
  draw.set("model.experts.sigmoid_scores", draw.coin() ? "true" : "false");
  draw.set("model.experts.capacity_factor", draw.one_of<std::string>({"0.0", "0.0", "0.7"}));
  draw.set("model.experts.balance_rate", draw.one_of<std::string>({"0.0", "0.01"}));
  draw.set("model.experts.auxiliary_loss", draw.one_of<std::string>({"0.0", "0.1"}));
}

using DrawSizes = void (*)(Draw&);

const Registry<DrawSizes>& sizes_of_families() {
  static const Registry<DrawSizes> all(
      "model.name", kModelNames, {{"gpt2", draw_gpt2}, {"llama3", draw_llama}, {"mlp", draw_mlp}, {"moe", draw_moe}});
  return all;
}

/// Tokens are bytes: there are 256 at least.
void draw_model(Draw& draw, const Job& job) {
  sizes_of_families().at(job.model.name)(draw);
  draw.set("model.layers", draw.between(1, 3));
  draw.set("model.vocabulary", draw.between(256, 420));
  draw.set("model.dropout", draw.one_of<std::string>({"0.0", "0.1", "0.37"}));
}

/// Into how many parts of equal size the samples of a step divide.
int64_t parts_of_batch(const Job& job, std::span<const MeshDegrees> meshes) {
  constexpr int64_t kMost = 1 << 20;
  auto parts = mesh_of(job).data_parallel();
  for (const auto& mesh : meshes) {
    parts = std::lcm(parts, mesh.data_parallel());
    if (parts > kMost)
      fail<BadInput>(
          "mesh {}: odd shapes would need more than {} samples, as many as all the meshes' data-parallel degrees "
          "divide; compare these meshes by themselves.",
          mesh.text(), kMost);
  }
  return parts;
}

bool needs_one_microbatch(const Job& job, std::span<const MeshDegrees> meshes) {
  return job.numerics.is_canonical() && !std::ranges::all_of(meshes, expert_sums_take_microbatches);
}

/// One microbatch on each of the meshes: the job's own, which bounds it, is one rank.
void set_one_microbatch(Draw& draw, int64_t rows) {
  for (const auto* degree : {"parallelism.data_parallel_replicate_degree", "parallelism.data_parallel_shard_degree",
                             "parallelism.expert_parallel_degree"})
    draw.set(degree, 1);
  draw.set("parallelism.pipeline_parallel_microbatch_size", rows);
  draw.set("training.local_batch_size", rows);
}

void draw_batch(Draw& draw, const Job& job, std::span<const MeshDegrees> meshes) {
  constexpr int64_t kTokens = 1000, kLongest = 130;  // a fraction of a second; four leaves of a sum over positions
  const auto parts = parts_of_batch(job, meshes);
  const auto rows = parts * draw.between(1, std::clamp<int64_t>(24 / parts, 1, 6));
  const auto longest = std::clamp<int64_t>(kTokens / rows, 3, kLongest);
  const auto shortest = draw.coin() ? ceil_divide(longest, 2) : 1;
  draw.set("training.seq_len", draw.between(shortest, longest));
  draw.set("training.global_batch_size", rows);
  if (needs_one_microbatch(job, meshes)) return set_one_microbatch(draw, rows);
  std::vector<int64_t> fitting;
  const auto of_group = rows / mesh_of(job).data_parallel();
  for (int64_t local = 1; local <= of_group; ++local)
    if (of_group % local == 0) fitting.push_back(local);
  draw.set("training.local_batch_size", draw.one_of(fitting));
}

void draw_way_of_computing(Draw& draw, const Job& job) {
  draw.set("activation_checkpoint.mode", draw.one_of<std::string>({"none", "full", "selective", "memory_budget"}));
  draw.set("activation_checkpoint.selective_ac_option", draw.one_of<std::string>({"1", "2", "op", "linear"}));
  draw.set("parallelism.fsdp_reshard_after_forward", draw.one_of<std::string>({"default", "always", "never"}));
  const auto type = draw.one_of<std::string>({"float32", "bfloat16"});
  const bool is_of_16_bits = job.numerics.rounded_levels > 0 || !job.training.mixed_precision_float32.empty();
  draw.set("training.mixed_precision_param", is_of_16_bits ? "bfloat16" : type);
  draw.set("parallelism.disable_loss_parallel", draw.one_of<std::string>({"false", "true"}));
  draw.set("parallelism.context_parallel_rotate_method", draw.one_of<std::string>({"allgather", kUlysses}));
}

/// Attention that drops weights is another op than attention that drops none.
void draw_attention(Draw& draw, const Job& job) {
  if (job.model.name != "mlp") draw.set("model.attention_dropout", draw.one_of<std::string>({"0.0", "0.0", "0.1"}));
}

void draw_sharing(Draw& draw) {
  draw.set("parallelism.shard_optimizer_state", draw.one_of<std::string>({"false", "true"}));
  if (draw.one_of<std::string>({"", kHeadTail}) == kHeadTail)
    draw.set("parallelism.context_parallel_load_balancer", kHeadTail);
}

/// Beside bfloat16: all parameters in float32, or those of the first layer. What a plug-in computes with them may not
/// bear it.
void draw_float32(Draw& draw, const Job& job) {
  const auto drawn = draw.one_of<std::string>({"", "*", "layers.0.*"});
  const auto pattern = drawn.empty() && !job.training.mixed_precision_float32.empty() ? "*" : drawn;  // fits any size
  const bool is_ours = holds(kModelNames, job.model.name) && !job.lora.enabled() && job.model.converters.empty();
  if (is_ours && !pattern.empty() && draw.is("training.mixed_precision_param", "bfloat16"))
    draw.set("training.mixed_precision_float32", pattern);
}

}  // namespace

std::vector<Setting> odd_shapes(uint64_t seed, const Job& job, std::span<const MeshDegrees> meshes) {
  Draw draw(seed);
  draw_model(draw, job);
  draw_batch(draw, job, meshes);
  draw_way_of_computing(draw, job);
  draw_attention(draw, job);
  draw_sharing(draw);
  draw_float32(draw, job);
  return draw.settings;
}

Job with_settings(const Job& job, std::span<const Setting> settings) {
  return resolve(parse_job(to_toml(job), "the job", settings), Launch{});
}

std::string text_of(std::span<const Setting> settings) {
  std::string text;
  for (const auto& setting : settings) {
    const char* quote = setting.written.find('*') == std::string::npos ? "" : "'";  // a shell would look for files
    text += fmt::format("{}--{} {}{}{}", text.empty() ? "" : " ", setting.key, quote, setting.written, quote);
  }
  return text;
}

}  // namespace lockstep::trainer
