#include "runtime/tensor/domain.h"

#include "core/error.h"

namespace lockstep {

c10::ScalarType stored(Domain domain, c10::ScalarType declared) {
  if (domain == Domain::kDeclared || !(c10::isFloatingType(declared) || c10::isComplexType(declared))) return declared;
  if (c10::isComplexType(declared) || c10::isFloat8Type(declared))
    fail<BadInput>("the float64 domain has no {}; use float32, float64, bfloat16 or float16", c10::toString(declared));
  return c10::kDouble;
}

c10::ScalarType accumulation(Domain domain, c10::ScalarType declared) {
  const auto storage = stored(domain, declared);
  return storage == c10::kBFloat16 || storage == c10::kHalf ? c10::kFloat : storage;
}

at::Tensor into_domain(Domain domain, const at::Tensor& tensor) {
  return tensor.to(stored(domain, tensor.scalar_type()));
}

const char* to_text(Domain domain) { return domain == Domain::kDeclared ? "native" : "float64"; }

}  // namespace lockstep
