#include "fuzz/checks/layout_checks.h"

#include "fuzz/trials/layout_moves.h"
#include "fuzz/trials/row_moves.h"

namespace lockstep::fuzz {

Checks layout_checks() {
  return {{"layouts/values", testing::a_move_keeps_values},
          {"layouts/rows", testing::moves_keep_rows},
          {"layouts/gradients", testing::a_move_keeps_gradients},
          {"layouts/threads", testing::a_move_between_threads_keeps_values},
          {"layouts/faults", testing::a_faulty_move_ends_in_an_error}};
}

}  // namespace lockstep::fuzz
