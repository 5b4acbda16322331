#include "replay/op_case/case_arguments.h"

#include <ATen/Functions.h>
#include <c10/util/accumulate.h>
#include <fmt/format.h>

#include <limits>
#include <set>

#include "core/error.h"
#include "replay/capture/recorded_tensor.h"
#include "replay/op_case/case_values.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::replay {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kExpected = "expected.";

std::string name_of(int64_t argument, int rank) { return fmt::format("argument.{}.rank{}", argument, rank); }

/// Doubles as hexadecimal text: every bit of them.
std::string exact(double value) { return fmt::format("{:a}", value); }

double inexact(const Json& json) {
  const auto text = json.get<std::string>();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size()) fail<BadInput>("'{}' in the case is no number", text);
  return value;
}

/// Numbers of a case are taken as they are: nlohmann's JSON would round and wrap them.
int64_t integer(const Json& json) {
  if (!json.is_number_integer()) fail<BadInput>("{} in the case is no integer", json.dump());
  if (json.is_number_unsigned() && json.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()})
    fail<BadInput>("{} in the case does not fit into 64 bits", json.dump());
  return json.get<int64_t>();
}

std::vector<int64_t> integers(const Json& json) {
  if (!json.is_array()) fail<BadInput>("{} in the case is no list of integers", json.dump());
  std::vector<int64_t> values;
  for (const auto& value : json) values.push_back(integer(value));
  return values;
}

template <class List>
Json list_of(const List& list) {
  auto json = Json::array();
  for (const auto& element : list) json.push_back(element);
  return json;
}

class Writer {
 public:
  Writer(const Mesh& mesh, std::vector<RecordedTensor>& tensors) : mesh_(mesh), tensors_(tensors) {}

  Json write(const c10::IValue& value) {
    if (value.isNone()) return nullptr;
    if (value.isTensor()) return tensor(value.toTensor());
    if (value.isBool()) return value.toBool();
    if (value.isInt()) return value.toInt();
    if (value.isDouble()) return {{"double", exact(value.toDouble())}};
    if (value.isString()) return {{"string", value.toStringRef()}};
    if (value.isDevice()) return {{"device", true}};
    if (value.isIntList()) return {{"ints", list_of(value.toIntVector())}};
    if (value.isBoolList()) return {{"bools", list_of(value.toBoolList().vec())}};
    if (value.isDoubleList()) return doubles(value.toDoubleVector());
    if (value.isList()) return list(value.toListRef());
    fail<BadInput>("a case cannot hold an argument of type {}", value.tagKind());
  }

 private:
  Json doubles(const std::vector<double>& values) {
    auto json = Json::array();
    for (const double value : values) json.push_back(exact(value));
    return {{"doubles", json}};
  }
  Json list(c10::ArrayRef<c10::IValue> values) {
    auto json = Json::array();
    for (const auto& value : values) json.push_back(write(value));
    return {{"list", json}};
  }
  Json tensor(const at::Tensor& tensor) {
    const auto number = count_++;
    if (!tensor.defined()) return {{"undefined", true}};
    if (!is_sharded(tensor)) {
      const auto name = fmt::format("argument.{}", number);
      tensors_.push_back(recorded_tensor(name, tensor));
      return {{"plain", name}};
    }
    const auto& spec = spec_of(tensor);
    if (&spec.layout.mesh() != &mesh_) fail<BadInput>("a case holds tensors of one whole mesh");
    for (size_t i = 0; i < mesh_.local_count(); ++i)
      tensors_.push_back(
          recorded_tensor(name_of(number, mesh_.local_ranks()[i]), sharded(tensor).shards()->local_tensors()[i]));
    return {{"sharded", number},
            {"layout", spec.layout.text()},
            {"sizes", spec.sizes},
            {"dtype", static_cast<int>(spec.dtype)}};
  }

  const Mesh& mesh_;
  std::vector<RecordedTensor>& tensors_;
  int64_t count_ = 0;
};

class Reader {
 public:
  Reader(const Mesh& mesh, const std::vector<RecordedTensor>& tensors) : mesh_(mesh) {
    for (const auto& tensor : tensors) tensors_[tensor.name] = &tensor;
  }

  c10::IValue read(const Json& json, const c10::TypePtr& type) {
    if (json.is_null()) return {};
    if (json.is_boolean()) return json.get<bool>();
    if (json.is_number_integer()) return integer(json);
    const auto kind = json.is_object() && !json.empty() ? json.begin().key() : "";
    const auto& value = kind.empty() ? json : json.begin().value();
    if (kind != "sharded" && json.size() != 1)
      fail<BadInput>("an argument of a case is {}, which is none", json.dump());
    if (kind == "double") return inexact(value);
    if (kind == "string") return value.get<std::string>();
    if (kind == "device" && value == true) return c10::Device(c10::kPrivateUse1);
    if (kind == "ints") return integers(value);
    if (kind == "bools") return value.get<std::vector<bool>>();
    if (kind == "doubles") return doubles(value);
    if (kind == "undefined" && value == true) return at::Tensor();
    if (kind == "plain") return plain_tensor(recorded(value.get<std::string>()));
    if (kind == "sharded") return from_parts(json);
    if (kind == "list") return list(value, type);
    fail<BadInput>("an argument of a case is {}, which is none", json.dump());
  }

  /// What nothing reads was not meant to be there.
  void require_all_read() const {
    for (const auto& [name, unused] : tensors_)
      if (!used_.contains(name) && !name.starts_with(kExpected))
        fail<BadInput>("no argument of the case takes its tensor {}", name);
  }

 private:
  static c10::List<double> doubles(const Json& json) {
    c10::List<double> values;
    for (const auto& value : json) values.push_back(inexact(value));
    return values;
  }
  c10::IValue list(const Json& json, const c10::TypePtr& type) {
    const auto* list_type = type->castRaw<c10::ListType>();
    if (!list_type || !json.is_array())
      fail<BadInput>("an argument of a case is a list where {} is expected", type->str());
    c10::impl::GenericList values(list_type->getElementType());
    for (const auto& value : json) values.push_back(read(value, list_type->getElementType()));
    return values;
  }
  const RecordedTensor& recorded(const std::string& name) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end() || name.starts_with(kExpected)) fail<BadInput>("the case has no tensor {}", name);
    used_.insert(name);
    return *found->second;
  }
  at::Tensor from_parts(const Json& json) {
    Shards shards;
    const auto number = integer(json.at("sharded"));
    const auto what = fmt::format("tensor {}", number);
    for (const int rank : mesh_.local_ranks()) shards.push_back(plain_tensor(recorded(name_of(number, rank))));
    const auto dtype = dtype_of(integer(json.at("dtype")), what);
    const auto sizes = integers(json.at("sizes"));
    require_sizes(sizes, what);
    return from_shards(std::move(shards), Layout::parse(mesh_, json.at("layout").get<std::string>()), sizes, dtype);
  }

  const Mesh& mesh_;
  std::map<std::string, const RecordedTensor*> tensors_;
  std::set<std::string> used_;
};

}  // namespace

at::Tensor plain_tensor(const RecordedTensor& recorded) {
  require_sizes(recorded.sizes, recorded.name);
  const auto options = at::TensorOptions(dtype_of(recorded.dtype, recorded.name));
  const auto bytes = static_cast<size_t>(c10::multiply_integers(recorded.sizes)) * options.dtype().itemsize();
  if (bytes != recorded.bytes.size())
    fail<BadInput>("{} of the case has {} bytes for {}", recorded.name, recorded.bytes.size(),
                   c10::str(c10::IntArrayRef(recorded.sizes)));
  return at::from_blob(const_cast<std::byte*>(recorded.bytes.data()), recorded.sizes, options).clone();
}

Json arguments_to_json(std::span<const c10::IValue> arguments, const Mesh& mesh, std::vector<RecordedTensor>& tensors) {
  Writer writer(mesh, tensors);
  auto json = Json::array();
  for (const auto& argument : arguments) json.push_back(writer.write(argument));
  return json;
}

std::vector<c10::IValue> arguments_from_json(const Json& json, const c10::FunctionSchema& schema, const Mesh& mesh,
                                             const std::vector<RecordedTensor>& tensors) {
  const auto& expected = schema.arguments();
  if (!json.is_array() || json.size() != expected.size())
    fail<BadInput>("the case has {} arguments, {} takes {}", json.size(), schema.name(), expected.size());
  Reader reader(mesh, tensors);
  std::vector<c10::IValue> arguments;
  for (size_t a = 0; a < expected.size(); ++a) arguments.push_back(reader.read(json[a], expected[a].type()));
  reader.require_all_read();
  return arguments;
}

}  // namespace lockstep::replay
