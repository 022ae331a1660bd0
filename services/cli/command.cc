#include "services/cli/command.h"

#include <algorithm>

namespace tollgate::cli {

std::string Arguments::Get(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() || found->second.empty() ? "" : found->second.front();
}

std::vector<std::string> Arguments::All(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

int64_t Arguments::Number(const std::string& key) const {
  return Has(key) ? std::stoll(Get(key), nullptr, 0) : 0;
}

std::string Arguments::Expand(const std::string& text) const {
  std::string expanded;
  size_t at = 0;
  for (size_t open = text.find('{'); open != std::string::npos; open = text.find('{', at)) {
    expanded += text.substr(at, open - at);
    const size_t close = text.find('}', open);
    std::string key = text.substr(open + 1, close - open - 1);
    if (key.starts_with(' ')) {
      key.erase(0, 1);
      if (Has(key)) expanded += ' ';
    }
    expanded += Get(key);
    at = close + 1;
  }
  return expanded + text.substr(at);
}

std::string Flag::Key() const {
  const size_t dashes = names.rfind("--");
  return dashes == std::string::npos ? names : names.substr(dashes + 2);
}

std::vector<Shown> Shown::Parse(const std::string& columns) {
  std::vector<Shown> parsed;
  for (size_t begin = 0; begin < columns.size();) {
    const size_t end = std::min(columns.find(" | ", begin), columns.size());
    const std::string item = columns.substr(begin, end - begin);
    begin = end + 3;
    const size_t space = item.find(' ');
    const size_t question = std::min(item.find('?'), space);
    const size_t equals = std::min(item.find('='), question);
    Shown shown{.name = item.substr(0, equals), .title = item.substr(space + 1)};
    shown.path = equals < question ? item.substr(equals + 1, question - equals - 1) : shown.name;
    if (question < space) shown.empty = item.substr(question + 1, space - question - 1);
    parsed.push_back(std::move(shown));
  }
  return parsed;
}

Command Command::WithCell(const std::string& name, Shown::MakeCell cell) const {
  Command changed = *this;
  std::ranges::find(changed.shown, name, &Shown::name)->cell = cell;
  return changed;
}

Flag WorkspaceFlag() { return Flag("-w,--workspace", "Workspace").Required(); }

Flag ParentFlag() {
  return Flag("-w,--workspace", "Workspace", "parent").Into("workspaces/{}").Required();
}

Flag PositionalParentFlag() {
  return Flag("workspace,-w,--workspace", "Workspace", "parent").Into("workspaces/{}").Required();
}

Flag LimitFlag(int64_t most) {
  const std::string number = std::to_string(most);
  return Flag("--limit", "At most this many; default " + number)
      .Positive()
      .Otherwise(number.c_str());
}

}  // namespace tollgate::cli
