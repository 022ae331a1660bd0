// Secrets that a test gave to the product or received from it, and the search for them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tollgate::test {

class Canaries {
 public:
  // kind: description for messages. Texts of less than 8 bytes could be found by chance: they are
  // ignored, and false is returned.
  bool Add(const std::string& kind, const std::string& text);
  // Returns "KIND in WHERE: …surrounding text…" for each canary in the text: as it is, in hex, in
  // base64 or percent-encoded.
  std::vector<std::string> FindIn(const std::string& where, std::string_view text) const;
  size_t size() const { return canaries_.size(); }

 private:
  struct Canary {
    std::string kind;
    std::vector<std::string> forms;
  };
  std::vector<Canary> canaries_;
};

}  // namespace tollgate::test
