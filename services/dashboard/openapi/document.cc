#include "services/dashboard/openapi/document.h"

#include <algorithm>

#include "common/base/ascii.h"
#include "common/json/json.h"

namespace tollgate::openapi {
namespace {

std::string Key(const std::string& key) {
  const bool plain =
      !key.empty() && !IsDigit(key[0]) && key[0] != '@' &&
      std::all_of(key.begin(), key.end(), [](char c) {
        return IsAlnum(c) || std::string_view("_-/{}:.$").find(c) != std::string_view::npos;
      });
  return plain ? key : json::Quoted(key);
}

}  // namespace

Node Node::Text(std::string_view text) { return Raw(json::Quoted(text)); }

Node Node::Raw(std::string text) {
  Node node(Kind::kScalar);
  node.scalar_ = std::move(text);
  return node;
}

Node& Node::Set(std::string_view key, Node value) {
  for (auto& [name, old] : members_) {
    if (name == key) {
      old = std::move(value);
      return *this;
    }
  }
  members_.emplace_back(key, std::move(value));
  return *this;
}

Node& Node::At(std::string_view key) {
  for (auto& [name, value] : members_) {
    if (name == key) return value;
  }
  members_.emplace_back(key, Map());
  return members_.back().second;
}

Node& Node::Add(Node value) {
  members_.emplace_back("", std::move(value));
  return *this;
}

std::string Node::Yaml(int indent) const {
  if (kind_ == Kind::kScalar) return scalar_;
  if (members_.empty()) return kind_ == Kind::kMap ? "{}" : "[]";
  const std::string space(static_cast<size_t>(indent), ' ');
  std::string out;
  for (const auto& [key, value] : members_) {
    if (!out.empty()) out += "\n" + space;
    const bool block = value.kind_ != Kind::kScalar && !value.members_.empty();
    if (kind_ == Kind::kList) {
      out += "- " + value.Yaml(indent + 2);
    } else if (block) {
      out += Key(key) + ":\n" + space + "  " + value.Yaml(indent + 2);
    } else {
      out += Key(key) + ": " + value.Yaml();
    }
  }
  return out;
}

}  // namespace tollgate::openapi
