// Every row of the error catalog over every endpoint that can give it: how it is brought about, and
// what else must hold of it.
#pragma once

#include <string>
#include <vector>

#include "tests/contract/endpoint_forms.h"
#include "tests/support/http.h"

namespace tollgate::test {

// Stands in everything that an engine says about a failure. No caller may ever see it.
inline constexpr char kEngineMark[] = "Zq7EngineWords";

// Whose key is sent. The last four are made anew for each case.
enum class Caller {
  kNobody,
  kGood,
  kBroke,
  kCapped,
  kDisabled,
  kRevoked,
  kExpired,
  kNarrow,      // may use sim/text only
  kOneAMinute,  // has used it up
  kFewTokens,   // has used them up
  kOneAtATime,  // has one running
  kAllHeld,     // whose credit is held by a running request
};

struct ErrorCase {
  std::string name;
  std::string row;  // of docs/errors.md
  Caller caller = Caller::kGood;
  // Of the credential, instead of the caller's; or of the body.
  HeaderList headers = {};
  Ask ask = {};
  // Instead of what ask says.
  std::string body = "";
  // Instead of the form's own method.
  std::string method = "POST";
  // Added to the path.
  std::string path_end = "";
  // The field at fault: in `param` (OpenAI family) or named by the message (Messages family).
  std::string param = "";
  // Fragments that the message must hold, by family; "" nothing in particular.
  std::string openai_words = "";
  std::string messages_words = "";
  // Of Retry-After: "" absent, "*" whole seconds from 1 to 60, "?" absent or such, else exactly it.
  std::string retry_after = "";
};

// All cases of one endpoint.
std::vector<ErrorCase> ErrorCases(const EndpointForm& form);

// Why this row can not be had from this endpoint from outside; "" it can, and has a case.
std::string WhyNoCase(const EndpointForm& form, const std::string& row);

}  // namespace tollgate::test
