// The public contract as a table: requests and the responses they must get.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/http.h"

namespace tollgate::test {

struct Case {
  // Section of docs/contract.md, two underscores, the case.
  std::string name;
  // Name of a key of the facts (tests/support/facts.h); empty: no key is sent.
  std::string key;
  std::string method = "POST";
  std::string target = "/v1/chat/completions";
  HeaderList headers = {};
  // $M is the model. With $S the case runs twice: $S is "" and then ,"stream":true.
  std::string body = "";
  // Hostile framing: these bytes are sent instead of a request. The connection must be closed.
  std::string bytes = "";
  // A body that is sent first, with the same key.
  std::string before = "";
  bool simulated = false;  // needs the simulated engine or its catalog

  int status = 200;
  // Code of the error; empty when the response is not an error.
  std::string code = "";
  std::string type = "";
  std::string param = "";
  // Retry-After: "" absent, "*" whole seconds from 1 to 60, "?" either, else exactly this value.
  std::string retry_after = "";
  // Path in the body (choices.0.index) and its JSON; "*": anything but null; "": absent.
  std::vector<std::pair<std::string, std::string>> members = {};
  // "duration": a duration such as 250ms, 6s or 6m0s.
  HeaderList expected_headers = {};
};

const std::vector<Case>& Cases();

}  // namespace tollgate::test
