// Keeps back the first half of a surrogate pair that an engine cut in two, so that every piece of a
// text is whole for itself: not every client puts halves from two events together again.
#pragma once

#include <string>
#include <string_view>

namespace tollgate::inference_router {

class HeldText {
 public:
  // The next piece, escaped as it came, with what was kept back before it and without what is kept
  // back now.
  std::string Join(std::string_view piece);
  // Half a pair waits for the rest of it.
  bool pending() const { return !high_.empty(); }

 private:
  std::string high_;
};

}  // namespace tollgate::inference_router
