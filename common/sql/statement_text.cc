#include "common/sql/statement_text.h"

#include <algorithm>

namespace tollgate::sql {

void AppendTuples(std::string& text, int rows, int columns) {
  int place = 1;
  for (int row = 0; row < rows; ++row) {
    text += row == 0 ? " (" : ", (";
    for (int column = 0; column < columns; ++column) {
      if (column > 0) text += ", ";
      text += '$';
      text += std::to_string(place++);
    }
    text += ')';
  }
}

void AppendEquals(std::string& text, std::span<const Connection::KeyColumn> columns) {
  for (size_t i = 0; i < columns.size(); ++i) {
    text += i == 0 ? " " : " AND ";
    text += columns[i].name;
    text += " = $" + std::to_string(i + 1);
  }
}

std::vector<std::string> SplitScript(std::string_view script) {
  std::vector<std::string> statements;
  std::string statement;
  const auto end = [&] {
    if (statement.find_first_not_of(" \n") != std::string::npos) statements.push_back(statement);
    statement.clear();
  };
  bool quoted = false;
  for (size_t at = 0; at < script.size(); ++at) {
    if (!quoted && script.substr(at).starts_with("--")) {
      at = std::min(script.find('\n', at), script.size());
      if (at == script.size()) break;
    }
    if (script[at] == '\'') quoted = !quoted;
    if (script[at] == ';' && !quoted) {
      end();
    } else {
      statement += script[at];
    }
  }
  end();
  return statements;
}

}  // namespace tollgate::sql
