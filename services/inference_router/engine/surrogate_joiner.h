// Joins the halves of a surrogate pair that an engine split over two chunks. Some clients decode
// each event by itself, so no event may end in half a pair.
#pragma once

#include <string>
#include <string_view>

namespace tollgate::inference_router {

class SurrogateJoiner {
 public:
  // Returns the next escaped piece, with the high surrogate held back from the previous piece in
  // front. A high surrogate at its end is held back in turn.
  std::string Join(std::string_view piece);
  // Whether a high surrogate is held back.
  bool pending() const { return !high_surrogate_.empty(); }

 private:
  std::string high_surrogate_;
};

}  // namespace tollgate::inference_router
