#pragma once

/// Redistributions of packed rows (Packing), of which a rank stores those of present cells alone.
namespace lockstep::testing {

/// To be run inside RapidCheck: over two layouts of any mesh every present cell keeps its row and no other gets one, as
/// direct moves or as messages in any order; none, some or all cells are present. Counts in
/// compared_cases()["layouts"].
void moves_keep_rows();

}  // namespace lockstep::testing
