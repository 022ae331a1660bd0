// A list as a set.
#pragma once

#include <algorithm>
#include <vector>

namespace tollgate {

// Sorts the list and removes duplicates.
template <typename T>
void SortUnique(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace tollgate
