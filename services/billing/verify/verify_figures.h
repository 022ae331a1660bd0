// What the checks of usage and of roll-ups share.
#pragma once

#include <cstddef>

namespace tollgate::billing {

inline constexpr int kVerifyPage = 5000;       // rows read at once
inline constexpr size_t kVerifyCompare = 400;  // keys compared at once
// In the order of the columns of a roll-up.
inline constexpr const char* kFigureNames[] = {"requests",  "free requests", "prompt",
                                               "cached",    "cache writes",  "completion",
                                               "reasoning", "charged",       "overrun"};

}  // namespace tollgate::billing
