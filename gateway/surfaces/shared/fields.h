// Checking and forwarding of top-level request members by a table of rules. Shared by the surfaces
// whose requests are close to what the engine gets.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/error/error.h"
#include "common/json/json.h"

namespace tollgate::gateway {

enum class FieldKind : uint8_t { kAny, kNumber, kInteger, kBool, kString, kArray, kObject };

enum class FieldFate : uint8_t {
  kForward,  // to the engine as the bytes that came
  kDrop,     // the gateway does not use it and no engine may see it
  kOwn,      // the surface reads it itself
};

// What one request member may look like. Bounds are inclusive, for numbers and integers only.
struct FieldRule {
  std::string_view name;
  FieldKind kind = FieldKind::kAny;
  FieldFate fate = FieldFate::kForward;
  int64_t low = INT64_MIN;
  int64_t high = INT64_MAX;
};

// The rule for this member; null when the table has none.
const FieldRule* FindRule(std::span<const FieldRule> rules, json::Value member);
// 400 with the field's name unless the value is of the rule's kind and within its bounds
// (gateway-spec.md, general rule 3: integer-valued floats are integers).
Result<void> CheckField(const FieldRule& rule, json::Value value);

// Builds members_json (inference.proto) from the bytes of the caller's document.
class MemberWriter {
 public:
  explicit MemberWriter(std::string_view text) : text_(text) { out_.reserve(text.size()); }

  // The member as it was written, key and all.
  void Forward(json::Value member);
  // An integer in its plain form: 5.0 and 1e3 are legal from callers, but not every engine takes
  // them.
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
