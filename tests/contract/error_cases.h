// Every row of the error catalog on every endpoint that can return it: how to cause it, and what
// else must hold.
#pragma once

#include <string>
#include <vector>

#include "tests/contract/endpoint_forms.h"
#include "tests/support/http.h"

namespace tollgate::test {

// Part of every error text of the simulated engine. No caller may ever see it.
inline constexpr char kEngineMark[] = "Zq7EngineWords";

// The key that is sent. The last six are created for each case.
enum class Caller {
  kNobody,
  kGood,
  kBroke,
  kCapped,
  kOverQuota,
  kDisabled,
  kRevoked,
  kExpired,
  kNarrow,      // allowed to use sim/text only
  kOneAMinute,  // one request a minute, already used
  kFewTokens,   // few tokens a minute, already used
  kOneAtATime,  // one concurrent request, already running
  kKeyRunning,  // sends the Idempotency-Key of a running request with the same body
  kKeyUsed,     // sends the Idempotency-Key of a finished request with the same body
  kAllHeld,     // all credit held by a running request
};

struct ErrorCase {
  std::string name;
  std::string row;  // of docs/errors.md
  Caller caller = Caller::kGood;
  // Headers that replace the credential, or describe the body.
  HeaderList headers = {};
  Ask ask = {};
  // Replaces the body of `ask`.
  std::string body = "";
  // Replaces the form's method.
  std::string method = "POST";
  // Appended to the path.
  std::string path_end = "";
  // The field at fault: in `param` (OpenAI family) or named by the message (Messages family).
  std::string param = "";
  // Fragments that the message must contain, by family; "": none.
  std::string openai_text = "";
  std::string messages_text = "";
  // Retry-After: "" absent, "*" whole seconds from 1 to 60, "?" either, else exactly this value.
  std::string retry_after = "";
};

// All cases of one endpoint.
std::vector<ErrorCase> ErrorCases(const EndpointForm& form);

// Why this row cannot be caused from outside on this endpoint; "": it can, and has a case.
std::string WhyNoCase(const EndpointForm& form, const std::string& row);

}  // namespace tollgate::test
