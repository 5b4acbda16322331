#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

namespace lockstep {

/// What the shards of a tensor store, given the dtype that the tensor declares.
///
/// `kDeclared` stores what is declared. `kFloat64` runs the very same program, rules and collectives with doubles
/// stored for every floating dtype: rounding shrinks to 1e-14 while an error of logic keeps its size.
enum class Domain : uint8_t { kDeclared, kFloat64 };

/// The dtype that stores a declared one. Throws BadInput for dtypes without a meaning in the domain (float8, complex).
c10::ScalarType stored(Domain domain, c10::ScalarType declared);

/// The dtype in which sums of a declared dtype are kept before they are complete: fp32 for bf16 and fp16.
c10::ScalarType accumulation(Domain domain, c10::ScalarType declared);

/// `tensor` in the domain's storage; itself when nothing changes.
at::Tensor into_domain(Domain domain, const at::Tensor& tensor);

const char* to_text(Domain domain);

}  // namespace lockstep
