// Calls as lines of text.
#include "fuzz/cases/text_cases.h"

#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <sstream>

#include "core/error.h"

namespace lockstep::testing {
namespace {

/// Reads the words of one call, drawing as it goes.
class Reader {
 public:
  explicit Reader(Inputs& inputs) : in_(inputs) {}

  Stack read(const std::string& text) {
    std::istringstream words(text);
    Stack stack;
    std::string word;
    while (words >> word) {
      if (word.front() != '{') {
        stack.push_back(argument(word));
        continue;
      }
      std::vector<at::Tensor> list;
      for (word.erase(0, 1);; words >> word) {
        const bool last = word.back() == '}';
        if (last) word.pop_back();
        if (!word.empty()) list.push_back(tensor(word));
        if (last) break;
      }
      stack.emplace_back(std::move(list));
    }
    return stack;
  }

 private:
  c10::IValue argument(const std::string& word) {
    if (word == "none") return {};
    if (word == "true" || word == "false") return word == "true";
    if (word == "dim") return dimension();
    if (word == "dims") return dimensions();
    if (word == "size") return first_;
    if (word == "f64") return static_cast<int64_t>(c10::kDouble);
    if (word == "f32") return static_cast<int64_t>(c10::kFloat);
    if (word.front() == '\'') return word.substr(1, word.size() - 2);
    if (word.front() == '<') return sizes(":" + word.substr(1, word.size() - 2));
    if (word.front() == '[') return list(word.substr(1, word.size() - 2));
    if (const auto dots = word.find(".."); dots != std::string::npos && std::isdigit(word.front()))
      return in_.number(std::stoll(word), std::stoll(word.substr(dots + 2)));
    if (std::isdigit(word.front()) || word.front() == '-') return number(word);
    return tensor(word);
  }

  static c10::IValue number(const std::string& word) {
    if (word.find('.') != std::string::npos) return std::stod(word);
    return static_cast<int64_t>(std::stoll(word));
  }

  static c10::IValue list(const std::string& text) {
    if (text.front() == 't' || text.front() == 'f') return truths(text);
    std::vector<int64_t> whole;
    std::vector<double> real;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
      real.push_back(std::stod(part));
      whole.push_back(std::stoll(part));
    }
    if (text.find('.') != std::string::npos) return real;
    return whole;
  }

  static c10::IValue truths(const std::string& text) {
    c10::List<bool> all;
    for (const char each : text)
      if (each == 't' || each == 'f') all.push_back(each == 't');
    return all;
  }

  int64_t dimension() {
    dim_ = in_.dimension(first_.size());
    return *dim_;
  }

  std::vector<int64_t> dimensions() {
    std::vector<int64_t> all;
    for (size_t d = 0; d < first_.size(); ++d)
      if (in_.flag() || (all.empty() && d + 1 == first_.size())) all.push_back(static_cast<int64_t>(d));
    return all;
  }

  const Sizes& shared() {
    if (!shared_) shared_ = in_.sizes(0, 3);
    return *shared_;
  }

  const Sizes& shared_and_full() {
    if (shared_) return *shared_;
    shared_ = in_.sizes(1, 3);
    for (auto& size : *shared_) size = std::max<int64_t>(size, 1);
    return *shared_;
  }

  const Sizes& leading() {
    if (!leading_) leading_ = in_.sizes(0, 2);
    return *leading_;
  }

  int64_t size_of(char letter, bool may_be_long) {
    if (std::isdigit(static_cast<unsigned char>(letter))) return letter - '0';
    const auto found = letters_.find(letter);
    if (found != letters_.end()) return found->second;
    return letters_[letter] = may_be_long ? in_.length(6) : in_.number(1, 6);
  }

  /// Not of many dimensions, nor of one twice, whose elements would be millions.
  static bool has_few_elements(const std::string& letters) {
    return letters.size() < 5 && std::set<char>(letters.begin(), letters.end()).size() == letters.size();
  }

  Sizes sizes(const std::string& shape) {
    if (shape.empty()) return shared();
    if (shape == "~") return in_.broadcast(shared());
    if (shape == "+") return shared_and_full();
    LOCKSTEP_CHECK(shape.front() == ':', "the shape \"{}\" of a call", shape);
    const bool dots = shape.starts_with(":...");
    Sizes result = dots ? leading() : Sizes{};
    const auto letters = shape.substr(dots ? 4 : 1);
    const bool may_be_long = has_few_elements(letters);
    for (const char letter : letters) result.push_back(size_of(letter, may_be_long));
    return result;
  }

  at::Tensor tensor(const std::string& word) {
    const bool is_index = word.front() == 'k';
    const auto size = sizes(word.substr(is_index ? 2 : 1));
    auto result = is_index ? in_.integers(size, 0, below(word[1]) - 1) : values(word.front(), size);
    if (!any_) first_ = size;
    any_ = true;
    return result;
  }

  int64_t below(char letter) {
    if (letter != '!') return size_of(letter, true);
    const auto dim = dim_.value_or(0);
    return first_.empty() ? 1 : first_[static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(first_.size()) : dim)];
  }

  at::Tensor values(char kind, const Sizes& size) {
    switch (kind) {
      case 'x':
        return in_.tensor(size);
      case 'p':
        return in_.positive(size);
      case 'u':
        return in_.distinct(size);
      case 'm':
        return in_.mask(size);
      case 'i':
        return in_.integers(size, -9, 9);
      case 'j':
        return in_.integers(size, 0, 9);
      case 'q':
        return at::add(at::mul(at::frac(at::abs(at::mul(in_.positive(size), 0.37))), 0.8), 0.1);
      case 'e':
        return at::zeros(size, at::kInt);
      case 'v':
        return at::ones(size, at::kInt).cumsum(-1, c10::kInt);  // pivots that permute nothing
      case 'z':
        return at::complex(as_real(in_.tensor(size)), as_real(in_.tensor(size)));
      default:
        fail<InternalError>("the kind '{}' of a tensor of a call", kind);
    }
  }

  static at::Tensor as_real(const at::Tensor& tensor) {
    return tensor.scalar_type() == c10::kDouble ? tensor : tensor.to(c10::kFloat);
  }

  Inputs& in_;
  std::optional<Sizes> shared_, leading_;
  std::map<char, int64_t> letters_;
  Sizes first_;  ///< of the first tensor
  std::optional<int64_t> dim_;
  bool any_ = false;
};

bool takes_optional(const c10::Argument& argument) {
  const auto list = argument.type()->cast<c10::ListType>();
  return list && list->getElementType()->kind() == c10::TypeKind::OptionalType;
}

c10::List<std::optional<at::Tensor>> as_optional(const std::vector<at::Tensor>& tensors) {
  c10::List<std::optional<at::Tensor>> list;
  for (const auto& tensor : tensors) list.push_back(tensor);
  return list;
}

/// Lists of indices may lack some.
Stack as_the_schema_says(const std::string& op, Stack stack) {
  const auto dot = std::min(op.find('.'), op.size());
  const auto found = c10::Dispatcher::singleton().findSchema(
      {"aten::" + op.substr(0, dot), dot == op.size() ? "" : op.substr(dot + 1)});
  for (size_t i = 0; found && i < stack.size(); ++i)
    if (stack[i].isTensorList() && takes_optional(found->schema().arguments()[i]))
      stack[i] = as_optional(stack[i].toTensorVector());
  return stack;
}

}  // namespace

OpCase case_of(const CallText& text) {
  return {text.op, text.traits, [op = std::string(text.op), arguments = std::string(text.arguments)](Inputs& in) {
            return as_the_schema_says(op, Reader(in).read(arguments));
          }};
}

}  // namespace lockstep::testing
