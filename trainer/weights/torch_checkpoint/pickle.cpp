// The opcodes of CPython's Lib/pickletools.py that plain structures are written with.
#include "trainer/weights/torch_checkpoint/pickle.h"

#include <algorithm>
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
      const auto code = static_cast<unsigned char>(take(1)[0]);
      if (code == '.') return pop();
      const auto found =
          std::find_if(std::begin(kOpcodes), std::end(kOpcodes), [&](auto& one) { return one.code == code; });
      if (found == std::end(kOpcodes))
        fail_here(fmt::format("opcode 0x{:02x} is none that plain data is written with", code));
      found->act(*this);
    }
  }

 private:
  struct Opcode {
    unsigned char code;
    const char* name;  ///< pickletools'
    void (*act)(Reader&);
  };
  static const Opcode kOpcodes[47];

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

  /// A value that nobody reads.
  void skip(uint64_t count) {
    take(count);
    push(Kind::kOther);
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
    std::string text(take(end - place_));
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
  Value* top_of(Kind kind, const char* name) {
    if (top()->kind != kind) fail_here(fmt::format("there is no {} to change", name));
    return stack_.back();
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  /// What was pushed since the last mark, which goes.
  std::vector<const Value*> since_mark() {
    if (marks_.empty()) fail_here("there is no mark");
    std::vector<const Value*> items(stack_.begin() + static_cast<ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }

  void append(Kind kind, const char* name, const std::vector<const Value*>& items) {
    auto* into = top_of(kind, name);
    if (kind == Kind::kDict && items.size() % 2 != 0) fail_here("a key has no value");
    into->items.insert(into->items.end(), items.begin(), items.end());
  }

  std::vector<const Value*> last(size_t count) {
    std::vector<const Value*> items(count);
    while (count > 0) items[--count] = pop();
    return items;
  }

  void sequence(std::vector<const Value*> items) { push(Kind::kSequence)->items = std::move(items); }

  void dict(const std::vector<const Value*>& items) { push(Kind::kDict), append(Kind::kDict, "dict", items); }

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
  void persistent() {
    auto* identity = pop();
    push_text(Kind::kName, kPersistent);
    stack_.push_back(identity);
    made();
  }
  void made() {
    const auto parts = last(2);
    if (parts[0]->kind != Kind::kName || parts[1]->kind != Kind::kSequence) fail_here("what is made has no class");
    auto* value = push(Kind::kObject);
    value->made_by = parts[0], value->arguments = parts[1];
  }
  void built() {
    const auto* state = pop();
    top_of(Kind::kObject, "object")->state = state;
  }

  void remember(uint64_t index) { memo_[index] = top(); }
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

const Pickle::Reader::Opcode Pickle::Reader::kOpcodes[] = {
    {0x80, "PROTO", [](Reader& r) { r.whole(1); }},
    {0x95, "FRAME", [](Reader& r) { r.whole(8); }},
    {'(', "MARK", [](Reader& r) { r.marks_.push_back(r.stack_.size()); }},
    {'0', "POP", [](Reader& r) { r.pop(); }},
    {'1', "POP_MARK", [](Reader& r) { r.since_mark(); }},
    {'2', "DUP", [](Reader& r) { r.stack_.push_back(r.top()); }},
    {'q', "BINPUT", [](Reader& r) { r.remember(r.whole(1)); }},
    {'r', "LONG_BINPUT", [](Reader& r) { r.remember(r.whole(4)); }},
    {0x94, "MEMOIZE", [](Reader& r) { r.remember(r.memo_.size()); }},
    {'h', "BINGET", [](Reader& r) { r.recall(r.whole(1)); }},
    {'j', "LONG_BINGET", [](Reader& r) { r.recall(r.whole(4)); }},
    {'N', "NONE", [](Reader& r) { r.push(Kind::kNone); }},
    {0x88, "NEWTRUE", [](Reader& r) { r.push_number(1); }},
    {0x89, "NEWFALSE", [](Reader& r) { r.push_number(0); }},
    {'K', "BININT1", [](Reader& r) { r.push_number(static_cast<int64_t>(r.whole(1))); }},
    {'M', "BININT2", [](Reader& r) { r.push_number(static_cast<int64_t>(r.whole(2))); }},
    {'J', "BININT", [](Reader& r) { r.push_number(static_cast<int32_t>(r.whole(4))); }},
    {0x8a, "LONG1", [](Reader& r) { r.push_number(r.long_number()); }},
    {'G', "BINFLOAT", [](Reader& r) { r.skip(8); }},
    {'C', "SHORT_BINBYTES", [](Reader& r) { r.skip(r.whole(1)); }},
    {'B', "BINBYTES", [](Reader& r) { r.skip(r.whole(4)); }},
    {0x8e, "BINBYTES8", [](Reader& r) { r.skip(r.whole(8)); }},
    {0x8c, "SHORT_BINUNICODE", [](Reader& r) { r.push_text(Kind::kText, r.take(r.whole(1))); }},
    {'X', "BINUNICODE", [](Reader& r) { r.push_text(Kind::kText, r.take(r.whole(4))); }},
    {0x8d, "BINUNICODE8", [](Reader& r) { r.push_text(Kind::kText, r.take(r.whole(8))); }},
    {')', "EMPTY_TUPLE", [](Reader& r) { r.push(Kind::kSequence); }},
    {']', "EMPTY_LIST", [](Reader& r) { r.push(Kind::kSequence); }},
    {0x8f, "EMPTY_SET", [](Reader& r) { r.push(Kind::kSequence); }},
    {'}', "EMPTY_DICT", [](Reader& r) { r.push(Kind::kDict); }},
    {'t', "TUPLE", [](Reader& r) { r.sequence(r.since_mark()); }},
    {'l', "LIST", [](Reader& r) { r.sequence(r.since_mark()); }},
    {0x91, "FROZENSET", [](Reader& r) { r.sequence(r.since_mark()); }},
    {'d', "DICT", [](Reader& r) { r.dict(r.since_mark()); }},
    {0x85, "TUPLE1", [](Reader& r) { r.sequence(r.last(1)); }},
    {0x86, "TUPLE2", [](Reader& r) { r.sequence(r.last(2)); }},
    {0x87, "TUPLE3", [](Reader& r) { r.sequence(r.last(3)); }},
    {'a', "APPEND", [](Reader& r) { r.append(Kind::kSequence, "list", r.last(1)); }},
    {'e', "APPENDS", [](Reader& r) { r.append(Kind::kSequence, "list", r.since_mark()); }},
    {0x90, "ADDITEMS", [](Reader& r) { r.append(Kind::kSequence, "set", r.since_mark()); }},
    {'s', "SETITEM", [](Reader& r) { r.append(Kind::kDict, "dict", r.last(2)); }},
    {'u', "SETITEMS", [](Reader& r) { r.append(Kind::kDict, "dict", r.since_mark()); }},
    {'c', "GLOBAL", [](Reader& r) { r.global(r.line()); }},
    {0x93, "STACK_GLOBAL", [](Reader& r) { r.stack_global(); }},
    {'R', "REDUCE", [](Reader& r) { r.made(); }},
    {0x81, "NEWOBJ", [](Reader& r) { r.made(); }},
    {'Q', "BINPERSID", [](Reader& r) { r.persistent(); }},
    {'b', "BUILD", [](Reader& r) { r.built(); }},
};

Pickle::Pickle(std::string_view bytes, const std::string& path) : root_(Reader(bytes, path, values_).read()) {}

bool is_made_by(const Value* value, std::string_view name) {
  return value && value->kind == Kind::kObject && value->made_by->text == name;
}

const Value* entry_of(const Value* dict, std::string_view key) {
  if (!dict || dict->kind != Kind::kDict) return nullptr;
  for (size_t i = dict->items.size(); i >= 2; i -= 2)  // of equal keys the last counts
    if (dict->items[i - 2]->kind == Kind::kText && dict->items[i - 2]->text == key) return dict->items[i - 1];
  return nullptr;
}

}  // namespace lockstep::trainer
