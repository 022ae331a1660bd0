// The query of a GET request.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/error/error.h"

namespace tollgate::gateway {

struct QueryParameter {
  std::string_view name;
  // Percent-decoded; empty: not given.
  std::optional<std::string> value = {};
};

// Sets the values of these parameters; others are ignored. Fails with 400 naming the parameter when
// it is given twice or its encoding is malformed.
Result<void> ReadQuery(std::string_view query, std::span<QueryParameter> parameters);

}  // namespace tollgate::gateway
