#include "trainer/job/job_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "trainer/job/allowed_values.h"
#include "trainer/job/job_setting.h"
#include "trainer/job/optimizer_settings.h"

namespace lockstep::trainer {
namespace {

// One row per key: section, name, member, accepted values, help.
// clang-format off
constexpr Key kOthers[] = {
    {"optimizer", "name", at<&Job::optimizer, &OptimizerSection::name>(), one_of(kOptimizerNames), "Optimizer"},
    {"optimizer", "lr", at<&Job::optimizer, &OptimizerSection::lr>(), kAtLeast0, "Peak learning rate."},
    {"optimizer", "beta1", at<&Job::optimizer, &OptimizerSection::beta1>(), kBelowOne,
     "Of all but SGD: decay of the first moment; of Lion its share in the sign."},
    {"optimizer", "beta2", at<&Job::optimizer, &OptimizerSection::beta2>(), kBelowOne,
     "Of all but SGD: decay of the second moment; of Lion that of the first. Published: 0.99 for Lion, 0.999 for Adam and Ranger21."},
    {"optimizer", "eps", at<&Job::optimizer, &OptimizerSection::eps>(), kAboveZero,
     "Of all but SGD and Lion: added to the root of the second moment."},
    {"optimizer", "weight_decay", at<&Job::optimizer, &OptimizerSection::weight_decay>(), kAtLeast0,
     "Weight decay: of SGD and Adam added to the gradient, of all others decoupled."},
    {"optimizer", "decay_1d", at<&Job::optimizer, &OptimizerSection::decay_1d>(), kAnything,
     "Whether parameters of one dimension, norms and biases, decay as all others do. (Not in torchtitan.)"},
    {"optimizer", "momentum", at<&Job::optimizer, &OptimizerSection::momentum>(), kBelowOne,
     "Of SGD and Muon: share of the last update that goes on; without it 0, of Muon 0.95. (Not in torchtitan.)"},
    {"optimizer", "nesterov", at<&Job::optimizer, &OptimizerSection::nesterov>(), kAnything,
     "Of SGD with momentum: steps from where the momentum leads. Muon always does. (Not in torchtitan.)"},
    {"optimizer", "ema_decay", at<&Job::optimizer, &OptimizerSection::ema_decay>(), kBelowOne,
     "An average of every trainable parameter is kept, ema_decay x average + (1 - ema_decay) x parameter after each "
     "step, from the initial values on; without it none. (Not in torchtitan.)"},
    {"optimizer", "offload_state", at<&Job::optimizer, &OptimizerSection::offload_state>(), kAnything,
     "Of AdamW and Adam on a GPU: the moments are kept in the host's memory, and are on the GPU while a parameter is "
     "updated, the same bits (docs/gpu.md). On CPUs they always are there. (Not in torchtitan.)"},
    {"optimizer", "groups", at<&Job::optimizer, &OptimizerSection::groups>(), kAnything,
     "Settings by parameter, as [[optimizer.groups]] tables: pattern, lr_factor, weight_decay, frozen, muon "
     "(docs/optimizers.md). The first whose pattern fits a name counts. (Not in torchtitan.)"},

    {"ranger21", "gradient_clipping", at<&Job::ranger21, &Ranger21Section::gradient_clipping>(), kAnything,
     "Adaptive gradient clipping: a row's gradient is at most 0.01 as long as the row. (Not in torchtitan.)"},
    {"ranger21", "gradient_centralisation", at<&Job::ranger21, &Ranger21Section::gradient_centralisation>(), kAnything,
     "The mean of a row's gradient is taken off. (Not in torchtitan.)"},
    {"ranger21", "gradient_normalisation", at<&Job::ranger21, &Ranger21Section::gradient_normalisation>(), kAnything,
     "A parameter's gradient is divided by its standard deviation. (Not in torchtitan.)"},
    {"ranger21", "positive_negative_momentum", at<&Job::ranger21, &Ranger21Section::positive_negative_momentum>(), kAnything,
     "Positive-negative momentum, and the largest second moment so far. (Not in torchtitan.)"},
    {"ranger21", "norm_loss", at<&Job::ranger21, &Ranger21Section::norm_loss>(), kAnything,
     "Weight decay leads rows to length 1, not 0. (Not in torchtitan.)"},
    {"ranger21", "stable_weight_decay", at<&Job::ranger21, &Ranger21Section::stable_weight_decay>(), kAnything,
     "Weight decay is divided by the root of the mean second moment of all parameters. (Not in torchtitan.)"},
    {"ranger21", "linear_warmup", at<&Job::ranger21, &Ranger21Section::linear_warmup>(), kAnything,
     "Warmup over 22 % of the steps, or 2 / (1 - beta2) if that is less, instead of lr_scheduler.warmup_steps. (Not in "
     "torchtitan.)"},
    {"ranger21", "explore_exploit", at<&Job::ranger21, &Ranger21Section::explore_exploit>(), kAnything,
     "The rate stays, then falls to 0 over the last 28 % of the steps, instead of what lr_scheduler says of the decay. "
     "(Not in torchtitan.)"},
    {"ranger21", "lookahead", at<&Job::ranger21, &Ranger21Section::lookahead>(), kAnything,
     "Every 5 steps parameters go back half the way to where they were. (Not in torchtitan.)"},
    {"ranger21", "softplus", at<&Job::ranger21, &Ranger21Section::softplus>(), kAnything,
     "The root of the second moment goes through softplus. (Not in torchtitan.)"},

    {"lora", "rank", at<&Job::lora, &LoraSection::rank>(), kRank,
     "Train changes of this rank to linear weights in their place (docs/fine_tuning.md); all else is frozen. 0: train the "
     "weights. (Not in torchtitan.)"},
    {"lora", "alpha", at<&Job::lora, &LoraSection::alpha>(), kAboveZero,
     "The changes are multiplied by alpha / rank. (Not in torchtitan.)"},
    {"lora", "dropout", at<&Job::lora, &LoraSection::dropout>(), kBelowOne,
     "Share of the changes' inputs that training drops. (Not in torchtitan.)"},
    {"lora", "targets", at<&Job::lora, &LoraSection::targets>(), kNotEmpty,
     "Which linear weights: patterns of their names, * for any characters. (Not in torchtitan.)"},
    {"lora", "dora", at<&Job::lora, &LoraSection::dora>(), kAnything,
     "DoRA: rows of the changed weights have lengths of their own, which are trained, too. (Not in torchtitan.)"},

    {"lr_scheduler", "warmup_steps", at<&Job::lr_scheduler, &SchedulerSection::warmup_steps>(), kAtLeast0,
     "Steps of linear warmup; cut to the schedule's length."},
    {"lr_scheduler", "total_steps", at<&Job::lr_scheduler, &SchedulerSection::total_steps>(), kAtLeast1,
     "Length of the schedule; without it training.steps."},
    {"lr_scheduler", "decay_ratio", at<&Job::lr_scheduler, &SchedulerSection::decay_ratio>(), kFraction,
     "Share of the schedule that decays, at its end; without it decay starts after the warmup."},
    {"lr_scheduler", "decay_type", at<&Job::lr_scheduler, &SchedulerSection::decay_type>(), one_of(kDecayNames),
     "Shape of the decay"},
    {"lr_scheduler", "min_lr_factor", at<&Job::lr_scheduler, &SchedulerSection::min_lr_factor>(), kFraction,
     "The decay ends at this multiple of the peak."},

    {"training", "dataset", at<&Job::training, &TrainingSection::dataset>(), one_of(kDatasetNames),
     "Kind of data"},
    {"training", "dataset_path", at<&Job::training, &TrainingSection::dataset_path>(), kAnything,
     "The data: one file, or of tokens a list of files, globs and folders, which are one after the other or, as "
     "\"PATH:WEIGHT\", a mixture (docs/data.md). A relative path starts at the working directory."},
    {"training", "pack_documents", at<&Job::training, &TrainingSection::pack_documents>(), kAnything,
     "Documents of a sample do not see each other: attention stays inside of each, its positions begin anew, no loss "
     "crosses a border (docs/data.md). (Not in torchtitan.)"},
    {"training", "loss", at<&Job::training, &TrainingSection::loss>(), one_of(kLossNames),
     "What is made small. (Not in torchtitan.) Choices"},
    {"training", "dpo_beta", at<&Job::training, &TrainingSection::dpo_beta>(), kAboveZero,
     "Of dpo: how strongly the model is held at what it began as. (Not in torchtitan.)"},
    {"training", "local_batch_size", at<&Job::training, &TrainingSection::local_batch_size>(), kBatch,
     "Samples per data-parallel rank and microbatch."},
    {"training", "global_batch_size", at<&Job::training, &TrainingSection::global_batch_size>(), kOpenBatch,
     "Samples per step; -1 = local_batch_size x data-parallel degree of the job's own mesh."},
    {"training", "seq_len", at<&Job::training, &TrainingSection::seq_len>(), kBatch, "Tokens per sample."},
    {"training", "max_norm", at<&Job::training, &TrainingSection::max_norm>(), kNorm,
     "Gradients are scaled down to this global norm; inf = never."},
    {"training", "steps", at<&Job::training, &TrainingSection::steps>(), kAtLeast1, "Steps to train, counted from 1."},
    {"training", "mixed_precision_param", at<&Job::training, &TrainingSection::mixed_precision_param>(), one_of(kComputeTypes),
     "Type of compute; parameters and optimizer state stay float32."},
    {"training", "mixed_precision_float32", at<&Job::training, &TrainingSection::mixed_precision_float32>(), kAnything,
     "Parameters that compute in float32 beside others in mixed_precision_param bfloat16: patterns of their names, such as "
     "\"*norm.weight\", \"*.router.gate.weight\" or \"output.weight\", * for any characters; with one all of its "
     "module's do. Modules give back the type they take; logits and a router's scores stay float32. (Not in torchtitan.)"},
    {"training", "mixed_precision_reduce", at<&Job::training, &TrainingSection::mixed_precision_reduce>(), one_of(kFloat32),
     "Type of gradient reductions."},
    {"training", "device", at<&Job::training, &TrainingSection::device>(), one_of(kDevices),
     "What computes; cuda needs a build with CUDA (docs/gpu.md). (Not in torchtitan.)"},

    {"parallelism", "data_parallel_replicate_degree",
     at<&Job::parallelism, &ParallelismSection::data_parallel_replicate_degree>(), kDegree,
     "Mesh axis dp_replicate: copies of the parameters."},
    {"parallelism", "data_parallel_shard_degree",
     at<&Job::parallelism, &ParallelismSection::data_parallel_shard_degree>(), kOpenDegree,
     "Mesh axis dp_shard: parameters sharded over it; -1 = the rest of the ranks, 1 when simulated."},
    {"parallelism", "fsdp_reshard_after_forward",
     at<&Job::parallelism, &ParallelismSection::fsdp_reshard_after_forward>(), one_of(kReshard),
     "Whether gathered parameters are freed between forward and backward; default = all but the last block's (norm and "
     "output), which backward needs at once."},
    {"parallelism", "data_parallel_bucket_cap_mb",
     at<&Job::parallelism, &ParallelismSection::data_parallel_bucket_cap_mb>(), kMebibytes,
     "Gradients that are reduced once a step (over dp_replicate; of norms over tp; in native numerics over cp) are as "
     "soon as so many MiB of a rank's are ready, while backward goes on; 0 = each by itself. (Not in torchtitan.)"},
    {"parallelism", "shard_optimizer_state", at<&Job::parallelism, &ParallelismSection::shard_optimizer_state>(), {},
     "Of dp_replicate: each replica keeps a part of the optimizer's state, gets that part's gradients alone, updates it and "
     "gives it to the others (ZeRO-1). The same bits, about as many bytes sent. (Not in torchtitan.)"},
    {"parallelism", "tensor_parallel_degree", at<&Job::parallelism, &ParallelismSection::tensor_parallel_degree>(),
     kDegree, "Mesh axis tp, with sequence parallel."},
    {"parallelism", "enable_async_tensor_parallel",
     at<&Job::parallelism, &ParallelismSection::enable_async_tensor_parallel>(), {},
     "In processes of one rank each, products begin with the rows that are here while those of other tp ranks arrive, "
     "and rows of a product are sent while the next are computed. Canonical numerics: the same bits."},
    {"parallelism", "context_parallel_degree", at<&Job::parallelism, &ParallelismSection::context_parallel_degree>(),
     kDegree, "Mesh axis cp: each rank has an equal run of every sequence."},
    {"parallelism", "context_parallel_rotate_method",
     at<&Job::parallelism, &ParallelismSection::context_parallel_rotate_method>(), one_of(kRotateMethods),
     "How queries meet the keys of other ranks: allgather = keys and values are gathered; alltoall = they go round in a "
     "ring, and no rank has a whole sequence; ulysses = in attention each rank has whole sequences of some heads. "
     "Canonical numerics: the same bits. (ulysses: not in torchtitan.)"},
    {"parallelism", "context_parallel_load_balancer",
     at<&Job::parallelism, &ParallelismSection::context_parallel_load_balancer>(), kLoadBalancer,
     "Of allgather and alltoall: headtail = ranks early and late in a sequence exchange halves of their queries in attention, so that "
     "all attend to as many keys; empty = late ranks attend to more. Canonical numerics: the same bits."},
    {"parallelism", "expert_parallel_degree", at<&Job::parallelism, &ParallelismSection::expert_parallel_degree>(), kDegree,
     "Ranks that experts are divided over: tensor parallel (unless expert_tensor_parallel_degree), then context "
     "parallel, then data_parallel_shard or a divisor of it."},
    {"parallelism", "expert_tensor_parallel_degree", at<&Job::parallelism, &ParallelismSection::expert_tensor_parallel_degree>(),
     kDegree, "With expert_parallel_degree: tensor_parallel_degree = its ranks cut each expert's matrices; 1 = they share in dividing the experts."},
    {"parallelism", "pipeline_parallel_degree", at<&Job::parallelism, &ParallelismSection::pipeline_parallel_degree>(),
     kDegree, "Mesh axis pp: stages, runs of the model's blocks (docs/pipeline.md)."},
    {"parallelism", "pipeline_parallel_schedule",
     at<&Job::parallelism, &ParallelismSection::pipeline_parallel_schedule>(), kNotEmpty,
     "GPipe, 1F1B, Interleaved1F1B, ZBH1, InterleavedZeroBubble, ZBVZeroBubble or DualPipeV (docs/pipeline.md)."},
    {"parallelism", "pipeline_parallel_schedule_csv",
     at<&Job::parallelism, &ParallelismSection::pipeline_parallel_schedule_csv>(), kAnything,
     "A file with the schedule, instead of its name; empty = none."},
    {"parallelism", "pipeline_parallel_microbatch_size",
     at<&Job::parallelism, &ParallelismSection::pipeline_parallel_microbatch_size>(), kBatch,
     "Samples of a pipeline's microbatch: training.local_batch_size is cut into these."},
    {"parallelism", "pipeline_parallel_layers_per_stage",
     at<&Job::parallelism, &ParallelismSection::pipeline_parallel_layers_per_stage>(), kLayers,
     "So many layers make a stage, at most; unset = one stage per rank, or what is usual for the schedule."},
    {"parallelism", "pipeline_parallel_first_stage_less_layers",
     at<&Job::parallelism, &ParallelismSection::pipeline_parallel_first_stage_less_layers>(), kAtLeast0,
     "The embedding counts as so many layers, where layers_per_stage counts."},
    {"parallelism", "pipeline_parallel_last_stage_less_layers",
     at<&Job::parallelism, &ParallelismSection::pipeline_parallel_last_stage_less_layers>(), kAtLeast0,
     "The output counts as so many layers, where layers_per_stage counts."},
    {"parallelism", "module_fqns_per_model_part",
     at<&Job::parallelism, &ParallelismSection::module_fqns_per_model_part>(), kAnything,
     "The blocks of each stage, such as [[\"tok_embeddings\", \"layers.0\"], [\"layers.1\", \"norm\", \"output\"]]: runs of the "
     "model's, by their paths or by the modules that checkpoints store of them. []: they are split by work. One rank of "
     "pp does not look at it."},
    {"parallelism", "disable_loss_parallel", at<&Job::parallelism, &ParallelismSection::disable_loss_parallel>(),
     kAnything, "Logits are gathered over tp before the loss, instead of three small sums of each token."},
    {"parallelism", "strict", at<&Job::parallelism, &ParallelismSection::strict>(), kAnything,
     "An implicit gather of sharded data is an error, not a counted warning. (Not in torchtitan.)"},
    {"parallelism", "elastic", at<&Job::parallelism, &ParallelismSection::elastic>(), kAnything,
     "A launch of fewer ranks than the mesh has runs the largest mesh with smaller data-parallel degrees that they are "
     "enough for, on the same global batch; ranks that are left over wait as spares (docs/processes.md). (Not in "
     "torchtitan.)"},

    {"activation_checkpoint", "mode", at<&Job::activation_checkpoint, &ActivationCheckpointSection::mode>(), one_of(kRecompute),
     "Whether layers are recomputed in backward."},
    {"activation_checkpoint", "selective_ac_option",
     at<&Job::activation_checkpoint, &ActivationCheckpointSection::selective_ac_option>(), kSelectiveOption,
     "With mode selective: every n-th layer is recomputed, the n-th first; op = all layers are, but what attention "
     "(not in a ring) and every second linear map of a layer gave is kept; linear = "
     "what all linear maps gave is, so that none of these runs again (experts' are no linear maps)."},
    {"activation_checkpoint", "memory_budget",
     at<&Job::activation_checkpoint, &ActivationCheckpointSection::memory_budget>(), kFraction,
     "With mode memory_budget: the share of the layers that may keep their activations; of the others their inputs are "
     "kept."},

    {"checkpoint", "enable", at<&Job::checkpoint, &CheckpointSection::enable>(), kAnything,
     "Save checkpoints, and resume from the one that load_step names."},
    {"checkpoint", "folder", at<&Job::checkpoint, &CheckpointSection::folder>(), kNotEmpty,
     "Folder of the checkpoints, inside job.dump_folder."},
    {"checkpoint", "interval", at<&Job::checkpoint, &CheckpointSection::interval>(), kAtLeast1,
     "Steps between checkpoints; the last step is always saved."},
    {"checkpoint", "keep_latest_k", at<&Job::checkpoint, &CheckpointSection::keep_latest_k>(), kAtLeast0,
     "Older checkpoints are removed; 0 keeps all."},
    {"checkpoint", "load_step", at<&Job::checkpoint, &CheckpointSection::load_step>(), kOpenIndex,
     "Step to resume from; -1 = the latest complete checkpoint, if there is one."},
    {"checkpoint", "async_mode", at<&Job::checkpoint, &CheckpointSection::async_mode>(), one_of(kAsyncModes),
     "async = a run stands still for a copy of its state only, which takes as much memory again, and writes that while it "
     "goes on (docs/checkpoint.md); disabled = until the checkpoint is written."},
    {"checkpoint", "initial_load_path", at<&Job::checkpoint, &CheckpointSection::initial_load_path>(), kAnything,
     "Weights that a new run begins with: a checkpoint's folder, or one of Hugging Face's or PyTorch's. Empty: drawn "
     "ones. A run that resumes does not look at it."},
    {"checkpoint", "initial_load_digest", at<&Job::checkpoint, &CheckpointSection::initial_load_digest>(), kDigest,
     "Digest that these weights must have; filled in when a run begins, and part of what the run is. (Not in torchtitan.)"},
    {"checkpoint", "allow_changed", at<&Job::checkpoint, &CheckpointSection::allow_changed>(), kJobKeys,
     "Keys whose values may be others than those of the run that saved the checkpoint; the run is then its successor. "
     "(Not in torchtitan.)"},

    {"metrics", "log_freq", at<&Job::metrics, &MetricsSection::log_freq>(), kAtLeast1, "Steps between log lines."},
    {"metrics", "enable_tensorboard", at<&Job::metrics, &MetricsSection::enable_tensorboard>(), kAnything,
     "Write curves that TensorBoard draws: of each number of metrics.jsonl (docs/metrics.md)."},
    {"metrics", "save_tb_folder", at<&Job::metrics, &MetricsSection::save_tb_folder>(), kNotEmpty,
     "Folder of their files, inside job.dump_folder. A resumed run adds one."},

    {"comm", "init_timeout_seconds", at<&Job::comm, &CommSection::init_timeout_seconds>(), kTimeout,
     "How long a process waits, at the start and in the first step, for another that sends nothing, in seconds; then "
     "the run ends, exit 4."},
    {"comm", "train_timeout_seconds", at<&Job::comm, &CommSection::train_timeout_seconds>(), kTimeout,
     "The same after the first step."},
    {"comm", "transport", at<&Job::comm, &CommSection::transport>(), one_of(kTransports),
     "What carries messages between processes: auto = shared memory on one host, TCP between hosts; "
     "gloo = c10d's, also between hosts. Same bits. (Not in "
     "torchtitan.)"},

    {"profiling", "enable_profiling", at<&Job::profiling, &ProfilingSection::enable_profiling>(), kAnything,
     "Write Chrome traces of some steps, a file for each rank, and name the slowest rank and op of them (docs/metrics.md)."},
    {"profiling", "save_traces_folder", at<&Job::profiling, &ProfilingSection::save_traces_folder>(), kNotEmpty,
     "Folder of the traces, inside job.dump_folder."},
    {"profiling", "profile_freq", at<&Job::profiling, &ProfilingSection::profile_freq>(), kAtLeast1,
     "Steps between two that are traced; the first is the step of this number."},

    {"debug", "seed", at<&Job::debug, &DebugSection::seed>(), kAtLeast0,
     "Seed of initial weights, data order and dropout."},

    {"validation", "enable", at<&Job::validation, &ValidationSection::enable>(), kAnything,
     "Tell the loss on data that are not trained on, without dropout, after step 1 and every validation.freq steps."},
    {"validation", "dataset", at<&Job::validation, &ValidationSection::dataset>(), one_of(kDatasetNames), "Kind of data"},
    {"validation", "dataset_path", at<&Job::validation, &ValidationSection::dataset_path>(), kAnything,
     "The data, as training.dataset_path."},
    {"validation", "seq_len", at<&Job::validation, &ValidationSection::seq_len>(), kBatch,
     "Tokens per sample, at most training.seq_len; without it as many."},
    {"validation", "freq", at<&Job::validation, &ValidationSection::freq>(), kAtLeast1, "Steps between validations."},
    {"validation", "steps", at<&Job::validation, &ValidationSection::steps>(), kOpenCount,
     "Batches of training.global_batch_size samples, from the first sample on; -1 = all samples once."},
    {"validation", "averages", at<&Job::validation, &ValidationSection::averages>(), kAnything,
     "Of each parameter the average that optimizer.ema_decay keeps is validated, in its place. (Not in torchtitan.)"},

    {"verify", "enable", at<&Job::verify, &VerifySection::enable>(), kAnything,
     "Compare with one device what verify.modes says; the same as train --verify. (Not in torchtitan.)"},
    {"verify", "modes", at<&Job::verify, &VerifySection::modes>(), one_of(kVerifyModes),
     "What is compared (docs/verify.md): step = every value of a step, ops = each op by itself, replicas = what several "
     "ranks hold alike, which needs no verify.enable. (Not in torchtitan.)"},
    {"verify", "every", at<&Job::verify, &VerifySection::every>(), kAtLeast1,
     "Of modes step and ops: every n-th step. (Not in torchtitan.)"},
    {"verify", "sample", at<&Job::verify, &VerifySection::sample>(), kAtLeast1,
     "Of mode ops: one op of so many, other ones in each step; 1 = all. (Not in torchtitan.)"},
    {"verify", "steps", at<&Job::verify, &VerifySection::steps>(), kAtLeast1,
     "Steps that `lockstep verify` compares on every mesh. (Not in torchtitan.)"},
    {"verify", "meshes", at<&Job::verify, &VerifySection::meshes>(), kMeshes,
     "Meshes that `lockstep verify` compares without --meshes. Empty: the job's own. (Not in torchtitan.)"},

    {"record", "folder", at<&Job::record, &RecordSection::folder>(), kAnything,
     "Folder for recordings of steps (docs/recording.md); the same as train --record. Empty: none. (Not in torchtitan.)"},
    {"record", "payload", at<&Job::record, &RecordSection::payload>(), kPayload,
     "all = what every collective delivered; none = digests only, which cannot be replayed; ring:K = all of the last K "
     "steps, in memory, written when a step fails or the run ends early. (Not in torchtitan.)"},
    {"record", "every", at<&Job::record, &RecordSection::every>(), kAtLeast1,
     "Steps between two recorded ones. (Not in torchtitan.)"},
    {"record", "state_every", at<&Job::record, &RecordSection::state_every>(), kAtLeast1,
     "Recorded steps between two that hold the state they start from; a replay begins at one of those. (Not in "
     "torchtitan.)"},

    {"numerics", "mode", at<&Job::numerics, &NumericsSection::mode>(), one_of(kNumericsNames),
     "canonical = the same bits on every mesh (docs/numerics.md); native = whatever LibTorch computes. (Not in "
     "torchtitan.)"},
    {"numerics", "rounded_levels", at<&Job::numerics, &NumericsSection::rounded_levels>(), kLevels,
     "Of canonical bfloat16: so many levels below the root of a product's tree are rounded to bfloat16, on every mesh; "
     "unfinished sums then travel in 2 bytes over 2^levels tensor-parallel ranks. Changes the numbers. (Not in "
     "torchtitan.)"},

    {"quantize", "rotated_block", at<&Job::quantize, &QuantizeSection::rotated_block>(), kRotatedBlock,
     "Of quantised linear maps: the factors of the forward product and of the input's gradient are turned first by a "
     "Hadamard transform of blocks of so many summands; 0 = not at all (docs/low_precision.md). (Not in torchtitan.)"},

    {"quantize.linear.float8", "recipe_name", at<&Job::float8, &Float8Section::recipe_name>(), one_of(kFloat8Recipes),
     "What float8 factors share a scale (docs/low_precision.md)"},
    {"quantize.linear.float8", "enable_fsdp_float8_all_gather",
     at<&Job::float8, &Float8Section::enable_fsdp_float8_all_gather>(), kAnything,
     "Weights are quantised before they are gathered: one byte an element travels. Of recipe_name tensorwise."},
    {"quantize.linear.float8", "precompute_float8_dynamic_scale_for_fsdp",
     at<&Job::float8, &Float8Section::precompute_float8_dynamic_scale_for_fsdp>(), kAnything,
     "The maxima of all weights that are gathered so are reduced at once, not block by block."},
    {"quantize.linear.float8", "filter_fqns", at<&Job::float8, &Float8Section::filter_fqns>(), kAnything,
     "Parts of names of linear maps that stay as they are, such as \"output\"; so do those with a size that is no "
     "multiple of 16."},
    {"quantize.linear.mx", "recipe_name", at<&Job::mx, &MxSection::recipe_name>(), one_of(kMxRecipes),
     "Format of the blocks of 32 elements (docs/low_precision.md)"},
    {"quantize.linear.mx", "filter_fqns", at<&Job::mx, &MxSection::filter_fqns>(), kAnything,
     "As that of quantize.linear.float8."},
};
// clang-format on

constexpr std::string_view kSections[] = {"job",
                                          "model",
                                          "model.experts",
                                          "model.latent_attention",
                                          "optimizer",
                                          "ranger21",
                                          "lora",
                                          "lr_scheduler",
                                          "training",
                                          "parallelism",
                                          "activation_checkpoint",
                                          "checkpoint",
                                          "metrics",
                                          "comm",
                                          "profiling",
                                          "debug",
                                          "validation",
                                          "verify",
                                          "record",
                                          "numerics",
                                          "quantize",
                                          "quantize.linear.float8",
                                          "quantize.linear.mx"};

template <class T>
std::string toml_text(const T& value) {
  if constexpr (std::is_same_v<T, bool>) return value ? "true" : "false";
  if constexpr (std::is_same_v<T, int64_t>) return fmt::format("{}", value);
  if constexpr (std::is_same_v<T, double>) return toml_number(value);
  if constexpr (std::is_same_v<T, std::string>) return toml_string(value);
}
std::string toml_text(const std::vector<std::string>& values) {
  std::string list;
  for (const auto& value : values) list += (list.empty() ? "" : ", ") + toml_string(value);
  return "[" + list + "]";
}
std::string toml_text(const std::vector<std::vector<std::string>>& lists) {
  std::string text;
  for (const auto& list : lists) text += (text.empty() ? "" : ", ") + toml_text(list);
  return "[" + text + "]";
}
std::string toml_text(const std::vector<ParameterGroup>& groups) { return groups_text(groups); }
template <class T>
std::string toml_text(const std::optional<T>& value) {
  return value ? toml_text(*value) : "";
}

}  // namespace

bool Allowed::accepts(std::string_view value) const {
  return (!word || word(value)) && (choices.empty() || holds(choices, value));
}

std::string Key::explanation() const {
  std::string text(help);
  for (const auto& choice : allowed.choices)
    if (!choice.about.empty())
      text += fmt::format("{} {} = {}", &choice == allowed.choices.data() ? ":" : ";", choice.name, choice.about);
  return text.ends_with('.') || text.ends_with(".)") ? text : text + ".";
}

std::string Key::dotted() const { return fmt::format("{}.{}", section, name); }

std::string_view Key::type() const {
  constexpr std::string_view kTypes[] = {
      "true or false", "an integer",        "a number",         "a string",      "an integer",
      "a number",      "a list of strings", "a list of tables", "true or false", "a list of lists of strings"};
  return kTypes[field.index()];
}

std::string Key::text(const Job& job) const {
  auto copy = job;
  return std::visit([&](auto member) { return toml_text(member(copy)); }, field);
}

std::span<const Key> job_keys() {
  static const auto all = [] {
    std::vector<Key> keys(model_keys().begin(), model_keys().end());
    keys.insert(keys.end(), std::begin(kOthers), std::end(kOthers));
    return keys;
  }();
  return all;
}
std::span<const std::string_view> job_sections() { return kSections; }

const Key* find_job_key(std::string_view dotted) {
  const auto keys = job_keys();
  const auto found = std::ranges::find_if(keys, [&](const Key& key) {
    return dotted.size() == key.section.size() + 1 + key.name.size() && dotted.starts_with(key.section) &&
           dotted[key.section.size()] == '.' && dotted.ends_with(key.name);
  });
  return found == keys.end() ? nullptr : &*found;
}

}  // namespace lockstep::trainer
