// Results of a pure function of a text, remembered: for texts of which few are used often, such as
// workspace ids.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>

namespace tollgate {

// Not safe for use by several threads: make it thread_local. A text takes the place of another one
// whose hash is the same modulo kPlaces, so the memory is bounded.
template <typename Value, size_t kPlaces = 256>
class Memo {
 public:
  // The value of the text: `make(text)`, unless it is remembered. Valid until the next call.
  template <typename Make>
  const Value& Get(std::string_view text, const Make& make) {
    Place& place = places_[std::hash<std::string_view>()(text) % kPlaces];
    if (!place.used || place.text != text) {
      place.value = make(text);
      place.text = text;
      place.used = true;
    }
    return place.value;
  }

 private:
  struct Place {
    bool used = false;
    std::string text;
    Value value{};
  };
  std::array<Place, kPlaces> places_;
};

}  // namespace tollgate
