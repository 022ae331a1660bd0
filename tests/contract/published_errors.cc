#include "tests/contract/published_errors.h"

#include <cstdlib>
#include <sstream>
#include <vector>

#include "tests/support/process.h"

namespace tollgate::test {
namespace {

// The cell's text without the spaces and back-quotes around it.
std::string Bare(const std::string& cell) {
  const size_t begin = cell.find_first_not_of(" `");
  const size_t end = cell.find_last_not_of(" `");
  return begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1);
}

}  // namespace

const std::map<std::string, PublishedError>& PublishedErrors() {
  static const std::map<std::string, PublishedError> rows = [] {
    std::map<std::string, PublishedError> found;
    const char* source = std::getenv("TOLLGATE_SOURCE");
    std::istringstream lines(ReadFile(std::string(source ? source : ".") + "/docs/errors.md"));
    for (std::string line; std::getline(lines, line);) {
      std::vector<std::string> cells;
      std::istringstream parts(line);
      for (std::string cell; std::getline(parts, cell, '|');) cells.push_back(Bare(cell));
      if (cells.size() < 7 || std::atoi(cells[2].c_str()) < 400) continue;
      found[cells[1]] = {std::atoi(cells[2].c_str()), cells[3], cells[4], cells[5],
                         cells[6] == "yes"};
    }
    return found;
  }();
  return rows;
}

}  // namespace tollgate::test
