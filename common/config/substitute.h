// ${env:NAME}, ${env:NAME:-default} and ${file:PATH} in the strings of a configuration file.
#pragma once

#include <string>

#include "common/base/result.h"

namespace tollgate::config {

struct Substituted {
  std::string text;
  // Whether any substitution was made.
  bool changed = false;
};

// "$${" is an escaped "${". Relative file paths start at base_dir. A trailing line break of a file
// is removed. Errors name the variable or the file, never its content.
BasicResult<Substituted, std::string> Substitute(const std::string& text,
                                                 const std::string& base_dir);

// Returns the content of a file of at most 4 MiB, or the reason why it cannot be read.
BasicResult<std::string, std::string> ReadWholeFile(const std::string& path);

}  // namespace tollgate::config
