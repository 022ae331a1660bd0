// Secrets that a test gave to the product or got from it, and where they must not be found.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tollgate::test {

class Canaries {
 public:
  // kind: what it is, for messages. Texts of less than 8 bytes would be found by chance: ignored,
  // and false.
  bool Add(const std::string& kind, const std::string& text);
  // "KIND in WHERE: …what stands around it…" for each one that is in the text: as it is, in hex, in
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
