// The published catalog of errors: docs/errors.md, which tests/structure compares with the code.
#pragma once

#include <map>
#include <string>

namespace tollgate::test {

struct PublishedError {
  int status = 0;
  std::string code;
  std::string openai_type;
  std::string messages_type;
  bool retryable = false;
};

// By the row's name.
const std::map<std::string, PublishedError>& PublishedErrors();

}  // namespace tollgate::test
