// Builds the repeated parts of statements. Internal to common/sql.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/sql/sql.h"

namespace tollgate::sql {

// Appends placeholders for the rows: " ($1, $2), ($3, $4)".
void AppendTuples(std::string& text, int rows, int columns);
// Appends " a = $1 AND b = $2".
void AppendEquals(std::string& text, std::span<const Connection::KeyColumn> columns);

// Splits a script into its statements. Each must end with a semicolon and have no comment after it.
std::vector<std::string> SplitScript(std::string_view script);

}  // namespace tollgate::sql
