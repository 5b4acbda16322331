#include "runtime/kernels/self_test/self_test.h"

#include <chrono>

#include "core/elementary/floating_environment.h"
#include "core/error.h"
#include "runtime/kernels/self_test/self_test_comparer.h"

namespace lockstep::kernels {

void SelfTestComparer::refuse(const SelfTestCase& which, std::size_t element, std::size_t size, double actual,
                              double expected) {
  const bool slowest = which.set == available_instruction_sets().front();
  fail<Inconsistency>(
      "self-test: {} on {}, operands {} bytes past a cache line: element {} of {} is {:a}, the order that canonical "
      "numerics promises gives {:a}. Build without options that change floating point (-ffast-math){}; "
      "numerics.mode = \"native\" does without the promise",
      which.kernel, name_of(which.set), which.offset, element, size, actual, expected,
      slowest ? "" : ", or try a lower LOCKSTEP_INSTRUCTION_SET (baseline, avx2)");
}

SelfTestReport self_test(const Tamper& tamper) {
  const auto start = std::chrono::steady_clock::now();
  check_floating_environment();
  SelfTestComparer comparer(tamper);
  for (const auto part : {test_tree, test_products, test_attention, test_ordered_sums, test_table_gradients, test_rows})
    part(comparer);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  return {comparer.comparisons(), took.count()};
}

const SelfTestReport& require_self_test() {
  static const SelfTestReport report = self_test();
  return report;
}

}  // namespace lockstep::kernels
