#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string_view>

namespace lockstep::models {

class KeyValueCache;
class Module;
class Parameter;

/// What a runtime does at the seams of a model. Without hooks a model is plain LibTorch code on one device; models name
/// logical axes at these seams and know nothing else of how they run.
class Hooks {
 public:
  virtual ~Hooks() = default;

  /// `tensor`, whose dimensions have the logical names `axes` ("batch length embed"), where the plan wants it.
  virtual at::Tensor annotate(const at::Tensor& tensor, std::string_view axes) = 0;

  /// Causal attention(query, key, value), all three [batch, heads, length, size], as it runs in one place: where it is
  /// called, queries find the keys of their whole sequence. Hooks may compute it themselves, heeding what stands beside
  /// it. What it gives is laid out as the query.
  struct Attention {
    std::function<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)> run;
    at::Tensor places = {};  ///< positions(): it is inside of documents alone; undefined: a sequence is one
    double dropout = 0;      ///< the share of weights that is dropped
  };
  virtual at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const Attention& attention) = 0;

  /// The tensor to compute with: a parameter gathered, in the compute dtype.
  virtual at::Tensor use(const Parameter& parameter) = 0;

  /// Of what blocks hand on, and of parameters that do not ask for another.
  virtual c10::ScalarType compute_type() const { return c10::kFloat; }

  /// Whether use() gives what Parameter::gather_as_float8() asked for; without hooks nobody heeds it.
  virtual bool gathers_float8() const { return false; }

  /// A table that the model computes itself (rotations), equal on every rank; hooks know it by where it lies, and keep
  /// it.
  virtual at::Tensor constant(const at::Tensor& table) = 0;

  /// Of each token of the microbatch that runs in its document, int64 [batch, length], where the tokens are; undefined:
  /// a sample is one document.
  virtual at::Tensor positions() const { return {}; }

  /// Keys and values of the tokens before those that run; null: there are none, and none are kept.
  virtual KeyValueCache* cache() const { return nullptr; }

  /// Whether the model is trained: then it drops what it is told to drop.
  virtual bool trains() const { return true; }

  /// Whether changes of low rank (models/low_rank.h) are made; without them the model is the one that it began as.
  virtual bool adapts() const { return true; }

  /// At the end of the step the bias [count] is changed by `rate` times how far each expert's share of the global
  /// batch's choices is below, in sign: `counts` [count], int64, says how many choices of this microbatch are each
  /// expert. May be told again where a block is run again. Without hooks nobody heeds it.
  virtual void balance(const Parameter& bias, const at::Tensor& counts, double rate) = 0;

  /// `x`, whose gradient brings that of `losses` [batch] along: their mean over the global batch is part of what
  /// training lowers, not of the loss that it tells. Without hooks nobody heeds them.
  virtual at::Tensor with_loss(const at::Tensor& x, const at::Tensor& losses) = 0;

  /// Runs one block of the model; may run it again in backward instead of keeping its activations, so
  /// `forward` owns what it captures (the model itself outlives the step).
  virtual at::Tensor run_block(Module& block, const std::function<at::Tensor(const at::Tensor&)>& forward,
                               const at::Tensor& input) = 0;

  /// The hooks of this thread, or null.
  static Hooks* current();
};

/// Installs hooks on this thread for the length of a scope.
class HooksScope {
 public:
  explicit HooksScope(Hooks& hooks);
  ~HooksScope();
  HooksScope(const HooksScope&) = delete;
  HooksScope& operator=(const HooksScope&) = delete;

 private:
  Hooks* previous_;
};

/// Names the logical axes of an activation; the value is unchanged.
at::Tensor annotate(const at::Tensor& tensor, std::string_view axes);

/// attention(query, key, value) through the hooks (Hooks::attend), or simply that.
at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const Hooks::Attention& attention);

/// One block of a model through the hooks, or simply forward(input) without them.
at::Tensor run_block(Module& block, const at::Tensor& input,
                     const std::function<at::Tensor(const at::Tensor&)>& forward);

/// Whether what runs is training; without hooks it is.
bool trains();

/// Whether changes of low rank are made; without hooks they are.
bool adapts();

/// The hooks are told it, if there are any.
void balance(const Parameter& bias, const at::Tensor& counts, double rate);
at::Tensor with_loss(const at::Tensor& x, const at::Tensor& losses);

/// A table where the model runs.
at::Tensor constant(const at::Tensor& table);

}  // namespace lockstep::models
