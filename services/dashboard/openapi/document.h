// A tree that is written as YAML. Strings are written in JSON's quotes, so that no value is read as
// another type.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tollgate::openapi {

class Node {
 public:
  static Node Text(std::string_view text);
  // A number, or true or false.
  static Node Raw(std::string text);
  static Node Map() { return Node(Kind::kMap); }
  static Node List() { return Node(Kind::kList); }

  // Sets a key of a map. Keys stay in the order of their first use.
  Node& Set(std::string_view key, Node value);
  Node& Set(std::string_view key, std::string_view text) { return Set(key, Text(text)); }
  Node& Set(std::string_view key, const char* text) { return Set(key, Text(text)); }
  // Returns the value of the key; creates a map if there is none.
  Node& At(std::string_view key);
  Node& Add(Node value);
  bool empty() const { return members_.empty(); }

  // YAML without a final line break.
  std::string Yaml(int indent = 0) const;

 private:
  enum class Kind { kScalar, kMap, kList };
  explicit Node(Kind kind) : kind_(kind) {}

  Kind kind_;
  std::string scalar_;
  std::vector<std::pair<std::string, Node>> members_;  // for a list: without keys
};

}  // namespace tollgate::openapi
