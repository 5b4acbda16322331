#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "models/division.h"
#include "models/hooks.h"
#include "runtime/context/scopes.h"

namespace lockstep::models {

class Module;

/// A parameter of a module: its name, sizes, and the logical axis of each dimension. `units` says in how many elements
/// a dimension may be cut at the least (a head group). The tensor is assigned later, by whoever decides where it lives.
///
/// It is drawn and stored as its division says: as one tensor of its own name, unless divide() or store_as() was
/// called.
class Parameter {
 public:
  /// `axes` names the dimensions: "heads embed". `units`: one per dimension; empty: all 1.
  Parameter(Module& owner, std::string name, std::vector<int64_t> sizes, std::string axes, Initial initial,
            std::vector<int64_t> units = {});
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  /// "layers.0.attention.qkv.weight"
  const std::string& name() const { return name_; }
  const std::vector<int64_t>& sizes() const { return sizes_; }
  const std::string& axes() const { return axes_; }
  const std::vector<int64_t>& units() const { return units_; }
  const Division& division() const { return division_; }
  const Module& owner() const { return *owner_; }
  int64_t element_count() const;

  /// Makes it a fused parameter of these parts.
  void divide(std::vector<Part> parts) { division_ = Division(sizes_, std::move(parts)); }
  /// Gives the tensor that is stored another name.
  void store_as(std::string name);
  /// No training changes it. REQUIRES: no tensor was assigned yet.
  void freeze() { trainable_ = false; }
  bool trainable() const { return trainable_; }
  /// Not trained either, but changed by each step in a way of its own (Hooks::balance), and computed with in float32,
  /// whole on every rank. REQUIRES: no tensor was assigned yet.
  void make_buffer() { trainable_ = false, is_buffer_ = true; }
  bool is_buffer() const { return is_buffer_; }
  /// Weights that a model is imported from need not have it (models/low_rank.h).
  void set_adapter() { is_adapter_ = true; }
  bool is_adapter() const { return is_adapter_; }
  /// It is quantised to float8 before it is brought together for computation, one scale for all of it
  /// (quantized_linear()).
  void gather_as_float8() { gathered_as_float8_ = true; }
  bool gathered_as_float8() const { return gathered_as_float8_; }
  /// It is computed with in float32 whatever the others are: what multiplies it takes its input so, and its module
  /// gives back the type that it took, but for logits.
  void compute_in_float32() { computed_in_float32_ = true; }
  bool computed_in_float32() const { return computed_in_float32_; }

  const at::Tensor& tensor() const { return tensor_; }
  void assign(at::Tensor tensor) { tensor_ = std::move(tensor); }

  /// The tensor to compute with (Hooks::use).
  operator at::Tensor() const;

 private:
  Module* owner_;
  std::string name_;
  std::vector<int64_t> sizes_;
  std::string axes_;
  std::vector<int64_t> units_;
  Division division_;
  bool trainable_ = true, is_adapter_ = false, is_buffer_ = false;
  bool gathered_as_float8_ = false, computed_in_float32_ = false;
  at::Tensor tensor_;
};

/// A part of a model with a name. Parts register with their owner in the order of construction; their calls open a
/// scope of that name, by which ops and random numbers are identified.
class Module {
 public:
  /// The root of a model.
  Module() = default;
  Module(Module& owner, std::string name);
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& name() const { return name_; }
  /// "layers.0.attention"; empty for the root.
  const std::string& path() const { return path_; }

  /// All parameters below this module, in order of registration.
  std::vector<Parameter*> parameters() const;
  /// All modules below this one, in order of registration, each before what is below it.
  std::vector<Module*> modules() const;

 protected:
  /// Opened at the start of forward().
  ModuleScope scope() const { return ModuleScope(name_); }

 private:
  friend class Parameter;
  void add_parameter(Parameter& parameter) { own_.push_back(&parameter); }

  std::string name_, path_;
  std::vector<Module*> children_;
  std::vector<Parameter*> own_;
};

/// Stores all parameters below a module without the module's own name: "head.norm.weight" as "norm.weight".
void store_as_own(const Module& module);

/// What one of Model::blocks() makes of what the block before it gave; the first one of tokens, the last one logits.
struct BlockCall {
  std::function<at::Tensor(const at::Tensor&)> forward;
  std::vector<const Parameter*> shared = {};  ///< of other blocks, which it reads, too: the table of a tied head
};

/// A model: tokens [batch, length] (int64) -> logits [batch, length, vocabulary].
class Model : public Module {
 public:
  /// A model that gives block_calls() is those, one after the other.
  virtual at::Tensor forward(const at::Tensor& tokens);
  virtual int64_t vocabulary() const = 0;
  /// The sizes that it was built with, for people: "width 256, layers 6, ...". Empty: it does not say.
  virtual std::string sizes_text() const { return {}; }

  /// The modules whose parameters are gathered together, in the order of their use: what reads tokens, the layers (what
  /// jobs may recompute), what gives logits. A parameter outside of all of them is gathered alone.
  virtual std::vector<Module*> blocks() = 0;

  /// A forward of tokens of these sizes in pieces, one for each of blocks(), for who runs them in several places: a
  /// pipeline. What blocks hand on is [batch, length, width()], in the dtype that the model computes in. Called where
  /// the hooks of the place are; not every piece is called there. Empty: the model cannot be cut into stages, and
  /// forward() says what it does.
  virtual std::vector<BlockCall> block_calls(at::IntArrayRef /*tokens*/) { return {}; }
  virtual int64_t width() const { return 0; }

  int64_t parameter_count() const;

  /// Operations, two for each multiplication and addition, that training takes for each token of sequences of this
  /// length: 6 for each parameter that a token is multiplied with (2 forward, 4 backward), and those of attention
  /// (attention_operations()). Recomputed activations are not counted twice: what A. Chowdhery et al., "PaLM: Scaling
  /// language modeling with Pathways", 2022, appendix B calls model FLOPs. A model that does not say: 6 for every
  /// parameter.
  virtual double operations_per_token(int64_t length) const;
};

/// Of scores and weighted values of all layers, 12 for each layer, element of the width and token of the sequence: as
/// the source above counts them, those that a causal mask leaves out included.
double attention_operations(int64_t layers, int64_t width, int64_t length);

}  // namespace lockstep::models
