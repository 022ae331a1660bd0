#include "common/sql/statement_text.h"

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

}  // namespace tollgate::sql
