#include "gateway/surfaces/shared/fields.h"

namespace tollgate::gateway {

namespace {

std::string Quote(std::string_view name) { return "'" + std::string(name) + "'"; }

Fail<Error> WrongType(const FieldRule& rule, std::string_view expected) {
  return BadRequest(Quote(rule.name) + " must be " + std::string(expected) + ".",
                    std::string(rule.name));
}

Fail<Error> OutOfRange(const FieldRule& rule, std::string_view type) {
  std::string message = Quote(rule.name) + " must be " + std::string(type);
  if (rule.low != INT64_MIN && rule.high != INT64_MAX) {
    message += " between " + std::to_string(rule.low) + " and " + std::to_string(rule.high);
  } else if (rule.low == 0) {
    message = Quote(rule.name) + " must be a non-negative" +
              (rule.kind == FieldKind::kInteger ? " integer" : " number");
  } else if (rule.low != INT64_MIN) {
    message += " of at least " + std::to_string(rule.low);
  }
  return BadRequest(message + ".", std::string(rule.name));
}

}  // namespace

const FieldRule* FindRule(std::span<const FieldRule> rules, json::Value member) {
  for (const FieldRule& rule : rules) {
    if (member.KeyEquals(rule.name)) return &rule;
  }
  return nullptr;
}

Result<void> CheckField(const FieldRule& rule, json::Value value) {
  switch (rule.kind) {
    case FieldKind::kAny:
      break;
    case FieldKind::kNumber: {
      const auto number = value.Number();
      if (!number || *number < static_cast<double>(rule.low) ||
          *number > static_cast<double>(rule.high)) {
        return OutOfRange(rule, "a number");
      }
      break;
    }
    case FieldKind::kInteger: {
      const auto integer = value.Integer();
      if (!integer || *integer < rule.low || *integer > rule.high) {
        return OutOfRange(rule, "an integer");
      }
      break;
    }
    case FieldKind::kBool:
      if (!value.is_bool()) return WrongType(rule, "true or false");
      break;
    case FieldKind::kString:
      if (!value.is_string()) return WrongType(rule, "a string");
      break;
    case FieldKind::kArray:
      if (!value.is_array()) return WrongType(rule, "an array");
      break;
    case FieldKind::kObject:
      if (!value.is_object()) return WrongType(rule, "an object");
      break;
  }
  return {};
}

void MemberWriter::Forward(json::Value member) {
  Separate();
  const size_t begin = member.key_offset();
  out_ += text_.substr(begin, member.offset() + member.raw().size() - begin);
}

void MemberWriter::ForwardInteger(json::Value member) {
  if (member.raw().find_first_of(".eE") == std::string_view::npos) return Forward(member);
  Add(member.key(), std::to_string(*member.Integer()));
}

void MemberWriter::Add(std::string_view name, std::string_view raw_value) {
  Separate();
  json::AppendQuoted(out_, name);
  out_.push_back(':');
  out_ += raw_value;
}

}  // namespace tollgate::gateway
