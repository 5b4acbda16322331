// The opcodes of Lib/pickletools.py in CPython that structures of plain data are written with.
#include "trainer/weights/torch_checkpoint/pickle.h"

#include <unordered_map>

#include "core/error.h"

namespace lockstep::trainer {

constexpr size_t kLongestName = 200;

using Value = Pickle::Value;
using Kind = Pickle::Kind;

class Pickle::Reader {
 public:
  Reader(std::string_view bytes, const std::string& path, std::deque<Value>& values)
      : bytes_(bytes), path_(path), values_(values) {}

  const Value* read() {
    while (true) {
      opcode_at_ = place_;
      const auto opcode = static_cast<unsigned char>(take(1)[0]);
      if (opcode == '.') return pop();
      if (!constant(opcode) && !collection(opcode) && !object(opcode) && !remembered(opcode))
        fail_here(fmt::format("opcode 0x{:02x} is none that plain data is written with", opcode));
    }
  }

 private:
  [[noreturn]] void fail_here(const std::string& what) const {
    fail<FileError>("{}: byte {}: {}. It may be damaged, or no checkpoint of PyTorch's.", path_, opcode_at_, what);
  }

  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - place_) fail_here("the file ends too early");
    place_ += count;
    return bytes_.substr(place_ - count, count);
  }

  /// Little-endian, of up to 8 bytes.
  uint64_t whole(size_t count) {
    const auto bytes = take(count);
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i) value |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    return value;
  }

  int64_t long_number() {
    const auto count = whole(1);
    if (count > 8) fail_here("a number of more than 64 bits");
    const auto value = whole(count);
    const bool is_negative = count > 0 && count < 8 && (value >> (8 * count - 1)) != 0;
    return static_cast<int64_t>(is_negative ? value | ~uint64_t{0} << (8 * count) : value);
  }

  std::string line() {
    const auto end = bytes_.find('\n', place_);
    if (end == std::string_view::npos) fail_here("the file ends too early");
    const std::string text(take(end - place_));
    take(1);
    return text;
  }

  Value* push(Kind kind) {
    values_.push_back({.kind = kind});
    stack_.push_back(&values_.back());
    return stack_.back();
  }
  void push_number(int64_t number) { push(Kind::kNumber)->number = number; }
  void push_text(Kind kind, std::string_view text) { push(kind)->text = text; }

  Value* pop() {
    if (stack_.size() <= floor()) fail_here("nothing is there to take");
    auto* value = stack_.back();
    stack_.pop_back();
    return value;
  }
  Value* top() {
    if (stack_.size() <= floor()) fail_here("nothing is there to change");
    return stack_.back();
  }
  Value* top(Kind kind, const char* name) {
    if (top()->kind != kind) fail_here(fmt::format("there is no {} to change", name));
    return stack_.back();
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  /// What was pushed since the last mark, which goes.
  std::vector<const Value*> since_mark() {
    if (marks_.empty()) fail_here("there is no mark");
    const std::vector<const Value*> items(stack_.begin() + static_cast<ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }

  void append(Kind kind, const char* name, const std::vector<const Value*>& items) {
    auto* into = top(kind, name);
    if (kind == Kind::kDict && items.size() % 2 != 0) fail_here("a key has no value");
    into->items.insert(into->items.end(), items.begin(), items.end());
  }

  std::vector<const Value*> last(size_t count) {
    std::vector<const Value*> items(count);
    while (count > 0) items[--count] = pop();
    return items;
  }

  bool constant(unsigned char opcode) {
    switch (opcode) {
      case 0x80:
        return whole(1), true;  // PROTO
      case 0x95:
        return whole(8), true;  // FRAME
      case 'N':
        return push(Kind::kNone), true;
      case 0x88:
        return push_number(1), true;
      case 0x89:
        return push_number(0), true;
      case 'K':
        return push_number(static_cast<int64_t>(whole(1))), true;
      case 'M':
        return push_number(static_cast<int64_t>(whole(2))), true;
      case 'J':
        return push_number(static_cast<int32_t>(whole(4))), true;
      case 0x8a:
        return push_number(long_number()), true;
      case 'G':
        return take(8), push(Kind::kOther), true;
      case 0x8c:
        return push_text(Kind::kText, take(whole(1))), true;
      case 'X':
        return push_text(Kind::kText, take(whole(4))), true;
      case 0x8d:
        return push_text(Kind::kText, take(whole(8))), true;
      case 'C':
        return take(whole(1)), push(Kind::kOther), true;
      case 'B':
        return take(whole(4)), push(Kind::kOther), true;
      case 0x8e:
        return take(whole(8)), push(Kind::kOther), true;
      default:
        return false;
    }
  }

  bool collection(unsigned char opcode) {
    switch (opcode) {
      case '(':
        return marks_.push_back(stack_.size()), true;
      case '0':
        return pop(), true;
      case '1':
        return since_mark(), true;
      case ')':
      case ']':
      case 0x8f:
        return push(Kind::kSequence), true;
      case '}':
        return push(Kind::kDict), true;
      case 't':
      case 'l':
      case 0x91:
        return sequence(since_mark()), true;
      case 0x85:
      case 0x86:
      case 0x87:
        return sequence(last(opcode - 0x84)), true;
      case 'a':
        return append(Kind::kSequence, "list", last(1)), true;
      case 'e':
      case 0x90:
        return append(Kind::kSequence, "list", since_mark()), true;
      case 's':
        return append(Kind::kDict, "dict", last(2)), true;
      case 'u':
        return append(Kind::kDict, "dict", since_mark()), true;
      default:
        return false;
    }
  }

  void sequence(std::vector<const Value*> items) { push(Kind::kSequence)->items = std::move(items); }

  bool object(unsigned char opcode) {
    switch (opcode) {
      case 'c':
        return global(line()), true;
      case 0x93:
        return stack_global(), true;
      case 'R':
      case 0x81:
        return made(), true;  // REDUCE, NEWOBJ
      case 'b':
        return built(), true;
      default:
        return false;
    }
  }

  /// Names are short, so that many of them of one long text take no memory.
  void name(std::string_view module, std::string_view own) {
    if (module.size() + own.size() > kLongestName) fail_here("a name is too long");
    push_text(Kind::kName, fmt::format("{} {}", module, own));
  }
  void global(const std::string& module) { name(module, line()); }
  void stack_global() {
    const auto words = last(2);
    if (words[0]->kind != Kind::kText || words[1]->kind != Kind::kText) fail_here("a name is no text");
    name(words[0]->text, words[1]->text);
  }
  void made() {
    const auto parts = last(2);
    if (parts[0]->kind != Kind::kName || parts[1]->kind != Kind::kSequence) fail_here("what is made has no class");
    auto* value = push(Kind::kObject);
    value->made_by = parts[0], value->arguments = parts[1];
  }
  void built() {
    const auto* state = pop();
    top(Kind::kObject, "object")->state = state;
  }

  bool remembered(unsigned char opcode) {
    switch (opcode) {
      case 'q':
        return memo_[whole(1)] = top(), true;
      case 'r':
        return memo_[whole(4)] = top(), true;
      case 0x94:
        return memo_.emplace(memo_.size(), top()), true;
      case 'h':
        return recall(whole(1)), true;
      case 'j':
        return recall(whole(4)), true;
      default:
        return false;
    }
  }

  void recall(uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) fail_here(fmt::format("nothing was remembered as {}", index));
    stack_.push_back(found->second);
  }

  std::string_view bytes_;
  const std::string& path_;
  std::deque<Value>& values_;
  size_t place_ = 0, opcode_at_ = 0;
  std::vector<Value*> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Value*> memo_;
};

Pickle::Pickle(std::string_view bytes, const std::string& path) : root_(Reader(bytes, path, values_).read()) {}

const Value* entry_of(const Value* dict, std::string_view key) {
  if (!dict || dict->kind != Kind::kDict) return nullptr;
  for (size_t i = 0; i + 1 < dict->items.size(); i += 2)
    if (dict->items[i]->kind == Kind::kText && dict->items[i]->text == key) return dict->items[i + 1];
  return nullptr;
}

}  // namespace lockstep::trainer
