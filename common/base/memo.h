// Remembers results of a pure function of a text, for texts of which few are used often, such as
// workspace ids.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>

namespace tollgate {

// Not thread-safe: make it thread_local. A text replaces another one with the same hash modulo
// kPlaces, so the memory is bounded.
template <typename Value, size_t kPlaces = 256>
class Memo {
 public:
  // Returns the remembered value of the text, or make(text). Valid until the next call.
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
