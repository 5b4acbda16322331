#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// A training job as typed values: what a job file (TOML) and `--section.key value` overrides say.
///
/// Section and key names are torchtitan v0.2.2's wherever it has them; the initialisers here are the defaults. What
/// each key means and accepts stands in one table, trainer/job/job_keys.cpp, which the parser, the printer, `--help`
/// and docs/job.md share.
namespace lockstep::trainer {

struct JobSection {
  std::string dump_folder = "./outputs";
  std::string description = "default job";
  std::vector<std::string> plugins;  ///< "libmine.so DIGEST" of each that was loaded; set by who loads them
};

/// Values of model.converters: sections of their own.
inline constexpr std::string_view kFloat8Converter = "quantize.linear.float8";
inline constexpr std::string_view kMxConverter = "quantize.linear.mx";

/// Of models with experts; none: the flavor's (models/families/moe_options.h).
struct ExpertsSection {
  std::optional<int64_t> count, per_token, hidden, shared, groups, groups_per_token, dense_layers, every;
  std::optional<bool> sigmoid_scores, normalized, score_before_experts;
  std::optional<double> scale, capacity_factor, balance_rate, auxiliary_loss;
};

/// Of models with latent attention; none: the flavor's.
struct LatentAttentionSection {
  std::optional<int64_t> query_rank, key_value_rank, plain_size, rotated_size, value_size;
};

struct ModelSection {
  std::string name = "llama3";
  std::string flavor = "debugmodel";
  /// Instead of the flavor's; none: the flavor's.
  std::optional<int64_t> width, layers, heads, key_value_heads, hidden, vocabulary;
  std::optional<double> dropout, attention_dropout;
  std::optional<double> rope_theta, rope_factor, norm_eps;
  std::optional<bool> tied_head, attention_bias;
  std::optional<int64_t> head_width, unrotated_every;
  std::optional<bool> query_key_norm;
  ExpertsSection experts;
  LatentAttentionSection latent_attention;
  std::vector<std::string> converters;

  bool converts_by(std::string_view converter) const {
    return std::find(converters.begin(), converters.end(), converter) != converters.end();
  }
};

/// Settings of the parameters whose names a pattern fits (trainer/job/optimizer_settings.h).
struct ParameterGroup {
  std::string pattern;
  std::optional<double> lr_factor;     ///< none: 1
  std::optional<double> weight_decay;  ///< none: the optimizer's
  bool frozen = false;
  std::optional<bool> muon;  ///< of Muon; none: by its rule
};

struct OptimizerSection {
  std::string name = "AdamW";
  double lr = 8e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  bool decay_1d = true;
  std::optional<double> momentum;  ///< of SGD and Muon; none: 0 and 0.95
  bool nesterov = false;
  std::optional<double> ema_decay;  ///< none: no averages are kept
  bool offload_state = false;       ///< AdamW's is in the host's memory between updates
  std::vector<ParameterGroup> groups;
};

/// The components of Ranger21 beyond AdamW.
struct Ranger21Section {
  bool gradient_clipping = true;
  bool gradient_centralisation = true;
  bool gradient_normalisation = true;
  bool positive_negative_momentum = true;
  bool norm_loss = true;
  bool stable_weight_decay = true;
  bool linear_warmup = true;
  bool explore_exploit = true;
  bool lookahead = true;
  bool softplus = true;
};

/// Changes of low rank that are trained in the place of the model's weights (models/low_rank.h).
struct LoraSection {
  int64_t rank = 0;  ///< 0: none; the weights themselves are trained
  double alpha = 16;
  double dropout = 0;
  std::vector<std::string> targets{"layers.*"};  ///< patterns of names of linear weights
  bool dora = false;

  bool enabled() const { return rank > 0; }
};

struct SchedulerSection {
  int64_t warmup_steps = 200;
  std::optional<int64_t> total_steps;  ///< none: training.steps
  std::optional<double> decay_ratio;   ///< none: decay starts right after the warmup
  std::string decay_type = "linear";
  double min_lr_factor = 0.0;
};

struct TrainingSection {
  std::string dataset = "text";
  std::vector<std::string>
      dataset_path;  ///< files, globs or folders, perhaps with weights: trainer/data/data_sources.h
  bool pack_documents = false;
  std::string loss = "cross_entropy";
  double dpo_beta = 0.1;
  int64_t local_batch_size = 8;
  int64_t global_batch_size = -1;  ///< -1: local_batch_size x data-parallel degree; resolve() fills it in
  int64_t seq_len = 2048;
  double max_norm = 1.0;
  int64_t steps = 10000;
  std::string mixed_precision_param = "float32";
  std::string mixed_precision_reduce = "float32";
  std::vector<std::string> mixed_precision_float32;  ///< patterns of names of parameters
  std::string device = "cpu";
};

struct ParallelismSection {
  int64_t data_parallel_replicate_degree = 1;
  int64_t data_parallel_shard_degree = -1;  ///< -1: the rest of the ranks; resolve() fills it in
  std::string fsdp_reshard_after_forward = "default";
  int64_t data_parallel_bucket_cap_mb = 25;
  bool shard_optimizer_state = false;
  int64_t tensor_parallel_degree = 1;
  bool enable_async_tensor_parallel = false;
  int64_t context_parallel_degree = 1;
  std::string context_parallel_rotate_method = "allgather";
  std::string context_parallel_load_balancer;
  int64_t expert_parallel_degree = 1, expert_tensor_parallel_degree = 1;
  int64_t pipeline_parallel_degree = 1;
  std::string pipeline_parallel_schedule = "1F1B";
  std::string pipeline_parallel_schedule_csv;  ///< a file; empty: the schedule of that name
  int64_t pipeline_parallel_microbatch_size = 1;
  std::optional<int64_t> pipeline_parallel_layers_per_stage;  ///< nothing: as many stages as is usual for the schedule
  int64_t pipeline_parallel_first_stage_less_layers = 1, pipeline_parallel_last_stage_less_layers = 1;
  std::vector<std::vector<std::string>> module_fqns_per_model_part;  ///< of each stage; empty: cut by work
  bool disable_loss_parallel = false;
  bool strict = false;
  bool elastic = false;
};

struct ActivationCheckpointSection {
  std::string mode = "none";
  std::string selective_ac_option = "2";
  double memory_budget = 0.5;
};

struct CheckpointSection {
  bool enable = false;
  std::string folder = "checkpoint";
  int64_t interval = 500;
  int64_t keep_latest_k = 10;
  int64_t load_step = -1;
  std::string async_mode = "disabled";
  std::string initial_load_path;           ///< weights to begin with; empty: drawn ones
  std::string initial_load_digest;         ///< of what lies there (weights_digest()); filled in when a run begins
  std::vector<std::string> allow_changed;  ///< keys

  bool is_async() const { return async_mode == "async"; }
};

struct MetricsSection {
  int64_t log_freq = 10;
  bool enable_tensorboard = false;
  std::string save_tb_folder = "tb";
};

struct CommSection {
  int64_t init_timeout_seconds = 300;
  int64_t train_timeout_seconds = 100;
  std::string transport = "auto";
};

struct ProfilingSection {
  bool enable_profiling = false;
  std::string save_traces_folder = "profile_traces";
  int64_t profile_freq = 10;
};

struct DebugSection {
  int64_t seed = 0;
};

struct ValidationSection {
  bool enable = false;
  std::string dataset = "text";
  std::vector<std::string> dataset_path;
  std::optional<int64_t> seq_len;  ///< none: training.seq_len
  int64_t freq = 10;
  int64_t steps = -1;  ///< -1: all of the data once
  bool averages = false;
};

/// Values of training.loss.
inline constexpr std::string_view kPreferenceLoss = "dpo";
inline constexpr const char* kHeadTail = "headtail";  // context_parallel_load_balancer
// context_parallel_rotate_method, besides allgather:
inline constexpr const char *kRing = "alltoall", *kUlysses = "ulysses";

/// Values of activation_checkpoint.selective_ac_option.
inline constexpr std::string_view kChoosesOps = "op", kKeepsMaps = "linear";

/// Values of verify.modes.
inline constexpr std::string_view kOpsMode = "ops";
inline constexpr std::string_view kStepMode = "step";
inline constexpr std::string_view kReplicasMode = "replicas";

struct VerifySection {
  bool enable = false;
  std::vector<std::string> modes{std::string(kStepMode), std::string(kReplicasMode)};
  int64_t every = 1;
  int64_t sample = 50;
  int64_t steps = 2;
  std::string meshes;  ///< as parse_meshes() reads them; empty: the job's own

  bool has(std::string_view mode) const { return std::find(modes.begin(), modes.end(), mode) != modes.end(); }
};

struct RecordSection {
  std::string folder;  ///< empty: nothing is recorded
  std::string payload = "all";
  int64_t every = 1;
  int64_t state_every = 10;
};

/// Values of numerics.mode.
inline constexpr std::string_view kCanonicalMode = "canonical";
inline constexpr std::string_view kNativeMode = "native";

struct NumericsSection {
  std::string mode{kCanonicalMode};
  int64_t rounded_levels = 0;

  bool is_canonical() const { return mode == kCanonicalMode; }
};

struct QuantizeSection {
  int64_t rotated_block = 0;
};

struct Float8Section {
  std::string recipe_name = "tensorwise";
  bool enable_fsdp_float8_all_gather = false;
  bool precompute_float8_dynamic_scale_for_fsdp = false;
  std::vector<std::string> filter_fqns;
};

struct MxSection {
  std::string recipe_name = "mxfp8_cublas";
  std::vector<std::string> filter_fqns{"output"};
};

struct Job {
  JobSection job;
  ModelSection model;
  OptimizerSection optimizer;
  Ranger21Section ranger21;
  LoraSection lora;
  SchedulerSection lr_scheduler;
  TrainingSection training;
  ParallelismSection parallelism;
  ActivationCheckpointSection activation_checkpoint;
  CheckpointSection checkpoint;
  MetricsSection metrics;
  CommSection comm;
  ProfilingSection profiling;
  DebugSection debug;
  ValidationSection validation;
  VerifySection verify;
  RecordSection record;
  NumericsSection numerics;
  QuantizeSection quantize;
  Float8Section float8;
  MxSection mx;
};

}  // namespace lockstep::trainer
