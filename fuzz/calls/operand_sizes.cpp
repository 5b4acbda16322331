#include "fuzz/calls/operand_sizes.h"

#include <ATen/ExpandUtils.h>

#include <cctype>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace lockstep::testing {
namespace {

using Factors = std::string;  ///< letters and digits whose product a dimension is

/// "...(h*g)d": whether any dimensions lead, and what the others are; "...?": the last operands may be left out.
struct Operand {
  bool dots = false, broadcasts = false, is_optional = false;
  std::vector<Factors> dims;
};

Operand parse(std::string text) {
  Operand operand;
  if (text == "~") return {.dots = true, .broadcasts = true};
  if (text.ends_with('?')) operand.is_optional = true, text.pop_back();
  if (text.starts_with("...")) operand.dots = true, text = text.substr(3);
  for (size_t i = 0; i < text.size(); ++i) {
    Factors factors(1, text[i]);
    if (text[i] == '(') {
      factors.clear();
      while (text[++i] != ')')
        if (text[i] != '*') factors += text[i];
    }
    operand.dims.push_back(factors);
  }
  return operand;
}

class Sizes {
 public:
  /// Whether a dimension of `size` can be the product, by what is known; learns one factor that is not.
  bool take(const Factors& factors, int64_t size) {
    if (factors == "t") return size >= 2 && size <= 32768 && (size & (size - 1)) == 0;
    int64_t known = 1;
    char unknown = 0;
    for (const char factor : factors) {
      if (std::isdigit(static_cast<unsigned char>(factor)))
        known *= factor - '0';
      else if (sizes_.contains(factor))
        known *= sizes_[factor];
      else
        unknown = factor;
    }
    if (!unknown) return known == size;
    if (known == 0 || size % known != 0) return size == 0;
    sizes_[unknown] = size / known;
    return true;
  }

  bool take_leading(c10::IntArrayRef sizes) {
    if (!leading_) leading_ = sizes.vec();
    return sizes == c10::IntArrayRef(*leading_);
  }

 private:
  std::map<char, int64_t> sizes_;
  std::optional<std::vector<int64_t>> leading_;
};

std::vector<Operand> parse_all(const std::string& operands) {
  std::vector<Operand> all;
  std::istringstream stream(operands);
  for (std::string text; std::getline(stream, text, ',');) all.push_back(parse(text));
  return all;
}

bool fits_count(const Operand& operand, int64_t dims) {
  const auto named = static_cast<int64_t>(operand.dims.size());
  return operand.dots ? dims >= named : dims == named;
}

/// Those dimensions whose factors are one, or several.
bool take_dims(const Operand& operand, c10::IntArrayRef given, bool products, Sizes& sizes) {
  const auto leading = given.size() - operand.dims.size();
  for (size_t d = 0; d < operand.dims.size(); ++d)
    if ((operand.dims[d].size() > 1) == products && !sizes.take(operand.dims[d], given[leading + d])) return false;
  return true;
}

}  // namespace

const std::string& own_operands(const std::string& op) {
  static const std::map<std::string, std::string> all = {
      {"mesh::absolute_maximum", "..."},
      {"mesh::adamw", "...,...,...,..."},
      {"mesh::attention", "b(h*g)ld,bhsd,bhse"},
      {"mesh::attention_backward", "b(h*g)le,b(h*g)ld,bhsd,bhse,b(h*g)le,b(h*g)l"},
      {"mesh::attention_draws", "bhld"},
      {"mesh::attention_over", "b(h*g)ld,bhsd,bhse,b(h*g)le,b(h*g)l(2*9)"},
      {"mesh::attention_over_backward", "b(h*g)le,b(h*g)ld,bhsd,bhse,b(h*g)le,b(h*g)l,b(h*g)ld"},
      {"mesh::attention_result", "bhle,bhl(2*9)"},
      {"mesh::document_attention", "b(h*g)ld,bhsd,bhse,bl,b(h*g)l3?"},
      {"mesh::document_attention_backward", "b(h*g)le,b(h*g)ld,bhsd,bhse,b(h*g)le,b(h*g)l,bl,b(h*g)l3?"},
      {"mesh::document_attention_over", "b(h*g)ld,bhsd,bhse,b(h*g)le,b(h*g)l(2*9),bl,b(h*g)l3?"},
      {"mesh::document_attention_over_backward", "b(h*g)le,b(h*g)ld,bhsd,bhse,b(h*g)le,b(h*g)l,b(h*g)ld,bl,b(h*g)l3?"},
      {"mesh::cross_entropy_backward", "...,...v,...,..."},
      {"mesh::expert_factors", "belw,blw,blk"},
      {"mesh::expert_linear", "beli,eoi"},
      {"mesh::expert_rows", "blw,blk,blk"},
      {"mesh::expert_sample_weight_gradient", "belo,beli"},
      {"mesh::expert_sums", "belw,blk,blk"},
      {"mesh::expert_weight_gradient", "belo,beli"},
      {"mesh::exponential_sum", "...v,..."},
      {"mesh::fixed_point_sum", "..."},
      {"mesh::float8_codes", "...,~"},
      {"mesh::float8_linear", "...k,...1,nk,n1"},
      {"mesh::float8_numbers", "...,~"},
      {"mesh::float8_weight_gradient", "...ln,...1n,...lk,...1k"},
      {"mesh::hadamard_transform", "...t"},
      {"mesh::pick_class", "...v,..."},
      {"mesh::quantize", "...,~"},
      {"mesh::quantize_blocks", "..."},
      {"mesh::rms_norm", "...d,d"},
      {"mesh::rms_norm_backward", "...d,...d,...,d"},
      {"mesh::rms_norm_input_gradient", "...d,...d,...,d"},
      {"mesh::rms_norm_weight_gradient", "...d,...d,..."},
      {"mesh::rotate_pairs", "bhl(2*p),lp,lp"},
      {"mesh::scaled_squares", "..."},
      {"mesh::sum_of_squares", "..."},
      {"mesh::swiglu", "...2w"},
      {"mesh::swiglu_backward", "...w,...2w"},
      {"mesh::weight_gradient", "...n,...k"},
  };
  return all.at(op);
}

bool fit(const std::string& operands, const std::vector<at::Tensor>& tensors) {
  auto all = parse_all(operands);
  while (all.size() > tensors.size() && all.back().is_optional) all.pop_back();
  if (all.size() != tensors.size()) throw std::invalid_argument(operands);
  Sizes sizes;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto given = tensors[i].sizes();
    if (!fits_count(all[i], tensors[i].dim())) return false;
    if (all[i].broadcasts && !at::is_expandable_to(given, tensors[0].sizes())) return false;
    if (all[i].broadcasts) continue;
    if (all[i].dots && !sizes.take_leading(given.slice(0, given.size() - all[i].dims.size()))) return false;
  }
  for (const bool products : {false, true})
    for (size_t i = 0; i < all.size(); ++i)
      if (!take_dims(all[i], tensors[i].sizes(), products, sizes)) return false;
  return true;
}

}  // namespace lockstep::testing
