#pragma once
#include <cstdint>

namespace lockstep {

/// Two vectors of `elements` independent normal numbers of one variance: the length of the first is above this times
/// the length of the second with a probability below 2^-39. (Each of the two sums of squares is below or above its mean
/// by more than half of that with 2^-40, by Chernoff's bound: P(sum >= n x), P(sum <= n x) <= (x exp(1 - x))^(n / 2)
/// above and below 1; Dasgupta and Gupta, "An elementary proof of a theorem of Johnson and Lindenstrauss", 2003,
/// lemma 2.2.) It is 1.4e13 of one element, 4 of 64, 1.03 of a hundred thousand.
double largest_ratio_of_lengths(int64_t elements);

}  // namespace lockstep
