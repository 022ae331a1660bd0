#include "common/config/substitute.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

namespace tollgate::config {
namespace {

constexpr off_t kMaxFileBytes = 4 << 20;

using Text = BasicResult<std::string, std::string>;

Text FromEnvironment(std::string_view spec) {
  const size_t split = spec.find(":-");
  const std::string name(spec.substr(0, split));
  if (name.empty()) return Fail{std::string("${env:} needs the name of a variable")};
  const char* value = std::getenv(name.c_str());
  if (split != std::string_view::npos) {
    // As in a shell, the default also replaces an empty variable.
    if (value == nullptr || *value == '\0') return std::string(spec.substr(split + 2));
    return std::string(value);
  }
  if (value == nullptr) {
    return Fail{"environment variable " + name + " is not set (write ${env:" + name +
                ":-default} for a default)"};
  }
  return std::string(value);
}

Text FromFile(std::string_view spec, const std::string& base_dir) {
  if (spec.empty()) return Fail{std::string("${file:} needs a path")};
  std::string path(spec);
  if (path[0] != '/' && !base_dir.empty()) path = base_dir + "/" + path;
  Text content = ReadWholeFile(path);
  if (!content) return Fail{"file " + path + " " + content.error()};
  std::string text = std::move(content).value();
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

Text Expand(std::string_view inner, const std::string& base_dir) {
  if (inner.starts_with("env:")) return FromEnvironment(inner.substr(4));
  if (inner.starts_with("file:")) return FromFile(inner.substr(5), base_dir);
  return Fail{
      std::string("\"${\" must be followed by env: or file: (write \"$${\" for a literal \"${\")")};
}

}  // namespace

Text ReadWholeFile(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0)
    return Fail{std::string("cannot be read: ") + std::strerror(errno)};
  if (S_ISDIR(status.st_mode)) return Fail{std::string("is a directory, not a file")};
  if (status.st_size > kMaxFileBytes) return Fail{std::string("is larger than 4 MiB")};
  std::ifstream file(path, std::ios::binary);
  if (!file) return Fail{std::string("cannot be read: ") + std::strerror(errno)};
  std::ostringstream content;
  content << file.rdbuf();
  if (file.bad()) return Fail{std::string("cannot be read")};
  return std::move(content).str();
}

BasicResult<Substituted, std::string> Substitute(const std::string& text,
                                                 const std::string& base_dir) {
  Substituted out;
  size_t at = 0;
  while (at < text.size()) {
    const size_t dollar = text.find("${", at);
    if (dollar == std::string::npos) break;
    if (dollar > at && text[dollar - 1] == '$') {
      out.text.append(text, at, dollar - 1 - at);
      out.text += "${";
      at = dollar + 2;
      continue;
    }
    const size_t end = text.find('}', dollar);
    if (end == std::string::npos) return Fail{std::string("\"${\" has no closing \"}\"")};
    Text value = Expand(std::string_view(text).substr(dollar + 2, end - dollar - 2), base_dir);
    if (!value) return Fail{std::move(value).error()};
    out.text.append(text, at, dollar - at);
    out.text += *value;
    out.changed = true;
    at = end + 1;
  }
  out.text.append(text, at, std::string::npos);
  return out;
}

}  // namespace tollgate::config
