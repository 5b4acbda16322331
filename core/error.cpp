#include "core/error.h"

namespace lockstep::detail {

void check_failed(const char* file, int line, const char* expression, const std::string& message) {
  fail<InternalError>("internal error at {}:{}: {}{}{}", file, line, expression, message.empty() ? "" : ": ", message);
}

}  // namespace lockstep::detail
