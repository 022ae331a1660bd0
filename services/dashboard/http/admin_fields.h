// Reads the members of a JSON object and keeps the first problem.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "common/error/error.h"
#include "common/json/json.h"

namespace tollgate::dashboard {

class Fields {
 public:
  // name: the field of the object itself, for error messages; empty for the top-level object. An
  // absent value reads as {}.
  Fields(json::Value object, std::string name, std::initializer_list<std::string_view> known);

  // The member as the requested type; empty or 0 when it is absent or null.
  std::string Text(std::string_view field);
  int64_t Number(std::string_view field);
  bool Flag(std::string_view field);
  std::vector<std::string> Texts(std::string_view field);
  // Microseconds since 1970 of a time like 2027-01-31T12:00:00Z; 0 when absent.
  int64_t Time(std::string_view field);
  // Nano-USD from decimal text; none when the member is absent or null.
  std::optional<int64_t> Usd(std::string_view field);
  bool Has(std::string_view field) const { return static_cast<bool>(object_.Find(field)); }
  json::Value Member(std::string_view field) const { return object_.Find(field); }

  // Records the problem, unless there already is one.
  void Refuse(std::string_view field, std::string message);
  // Takes over the problem of a nested object.
  void Merge(const Fields& inner);
  const std::optional<Error>& problem() const { return problem_; }

 private:
  // The member if it is present, not null and of this type. Refuses another type.
  json::Value Get(std::string_view field, json::Type type, std::string_view what);
  json::Value object_;
  std::string name_;
  std::optional<Error> problem_;
};

}  // namespace tollgate::dashboard
