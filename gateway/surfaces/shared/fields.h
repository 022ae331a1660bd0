// Checks and forwards top-level request members by a table of rules.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/error/error.h"
#include "common/json/json.h"

namespace tollgate::gateway {

enum class FieldKind : uint8_t { kAny, kNumber, kInteger, kBool, kString, kArray, kObject };

enum class FieldAction : uint8_t {
  kForward,  // forwarded to the engine, byte for byte
  kDrop,     // ignored; not forwarded
  kConsume,  // the surface reads it itself
  kRefuse,   // 400
};

// The type and range of a request member. Bounds are inclusive and apply to numbers and integers
// only.
struct FieldRule {
  std::string_view name;
  FieldKind kind = FieldKind::kAny;
  FieldAction action = FieldAction::kForward;
  int64_t low = INT64_MIN;
  int64_t high = INT64_MAX;
};

// The rule for this member; null if there is none.
const FieldRule* FindRule(std::span<const FieldRule> rules, json::Value member);
// Fails with 400 and the field's name unless the value has the rule's type and is within its bounds
// (docs/contract.md, general rule 3: integer-valued floats are integers).
Result<void> CheckField(const FieldRule& rule, json::Value value);

// Builds members_json (inference.proto) from the bytes of the client's document.
class MemberWriter {
 public:
  explicit MemberWriter(std::string_view text) : text_(text) { out_.reserve(text.size()); }

  // Copies the member with its key, byte for byte.
  void Forward(json::Value member);
  // Writes an integer in plain form: clients may send 5.0 or 1e3, which some engines refuse.
  void ForwardInteger(json::Value member);
  void Add(std::string_view name, std::string_view raw_value);
  std::string Take() { return std::move(out_); }

 private:
  void Separate() {
    if (!out_.empty()) out_.push_back(',');
  }
  std::string_view text_;
  std::string out_;
};

}  // namespace tollgate::gateway
