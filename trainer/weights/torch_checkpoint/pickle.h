#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::trainer {

/// What Python's pickle module wrote of plain structures (protocols 2 to 5), read as data: a class or a function stays
/// a name, what would be called stays a name with its arguments. Nothing is imported or run.
class Pickle {
 public:
  enum class Kind {
    kNone,
    kNumber,    ///< a whole number or a truth value
    kText,      ///< of characters
    kOther,     ///< a fraction, bytes
    kSequence,  ///< a tuple, a list or a set
    kDict,
    kName,   ///< of a class or a function: its module, a space, its own name
    kObject  ///< what a class or a function would make of its arguments; by kPersistent: what lies beside the pickle
  };

  struct Value {
    Kind kind = Kind::kNone;
    int64_t number = 0;
    std::string text;                  ///< also the name
    std::vector<const Value*> items;   ///< of a dict keys and values in turn
    const Value* made_by = nullptr;    ///< of an object: a kName
    const Value* arguments = nullptr;  ///< of an object: a kSequence
    const Value* state = nullptr;      ///< what an object would be given once it was made; null without
  };

  static constexpr auto kPersistent = "persistent id";

  /// FileError that names the file and the byte where it is no pickle, or one that does what no data needs. Memory is
  /// proportional to the bytes.
  Pickle(std::string_view bytes, const std::string& path);

  const Value& root() const { return *root_; }

 private:
  class Reader;
  std::deque<Value> values_;  ///< all of them: they may point to each other in any way
  const Value* root_ = nullptr;
};

/// Whether a value is an object of this class or function; null is none.
bool is_made_by(const Pickle::Value* value, std::string_view name);

/// What a dict has for a text; null where it has not, and of anything else.
const Pickle::Value* entry_of(const Pickle::Value* dict, std::string_view key);

}  // namespace lockstep::trainer
