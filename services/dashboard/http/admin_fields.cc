#include "services/dashboard/http/admin_fields.h"

#include <algorithm>

#include "common/base/utc_text.h"
#include "common/money/money.h"

namespace tollgate::dashboard {

Fields::Fields(json::Value object, std::string name, std::initializer_list<std::string_view> known)
    : object_(object), name_(std::move(name)) {
  if (!object_ || (object_.is_null() && !name_.empty())) {
    object_ = json::Value();
    return;
  }
  if (!object_.is_object()) {
    object_ = json::Value();
    problem_ =
        BadRequest((name_.empty() ? "The body" : name_) + " must be a JSON object.", name_).error;
    return;
  }
  for (const json::Value member : object_) {
    const std::string key = member.key();
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      Refuse(key, "unknown field.");
    }
  }
}

void Fields::Refuse(std::string_view field, std::string message) {
  if (problem_) return;
  std::string param = name_.empty() ? std::string(field) : name_ + "." + std::string(field);
  problem_ = BadRequest(param + ": " + message, param).error;
}

void Fields::Merge(const Fields& inner) {
  if (!problem_) problem_ = inner.problem_;
}

json::Value Fields::Get(std::string_view field, json::Type type, std::string_view what) {
  const json::Value value = object_ ? object_.Find(field) : json::Value();
  if (value.is_null()) return {};
  if (value.type() != type) {
    Refuse(field, "must be " + std::string(what) + ".");
    return {};
  }
  return value;
}

std::string Fields::Text(std::string_view field) {
  const json::Value value = Get(field, json::Type::kString, "a string");
  return value ? value.string() : "";
}

int64_t Fields::Number(std::string_view field) {
  const json::Value value = Get(field, json::Type::kNumber, "a whole number");
  if (!value) return 0;
  const auto number = value.Integer();
  if (!number) Refuse(field, "must be a whole number.");
  return number.value_or(0);
}

bool Fields::Flag(std::string_view field) {
  const json::Value value = Get(field, json::Type::kBool, "true or false");
  return value && value.boolean();
}

std::vector<std::string> Fields::Texts(std::string_view field) {
  std::vector<std::string> texts;
  const json::Value value = Get(field, json::Type::kArray, "an array of strings");
  if (!value) return texts;
  for (const json::Value element : value) {
    if (!element.is_string()) {
      Refuse(field, "must be an array of strings.");
      return {};
    }
    texts.push_back(element.string());
  }
  return texts;
}

int64_t Fields::Time(std::string_view field) {
  const std::string text = Text(field);
  if (text.empty()) return 0;
  const auto time = ParseUtcSecond(text);
  if (!time || *time < 0) Refuse(field, "must be a time in UTC like 2027-01-31T12:00:00Z.");
  return time.value_or(0);
}

std::optional<int64_t> Fields::Usd(std::string_view field) {
  const json::Value value =
      Get(field, json::Type::kString, "an amount in USD as text, like \"12.50\"");
  if (!value) return std::nullopt;
  const auto nano = ParseDecimalUsdToNano(value.string());
  if (!nano) Refuse(field, "must be an amount in USD with at most 9 decimals, like \"12.50\".");
  return nano;
}

}  // namespace tollgate::dashboard
