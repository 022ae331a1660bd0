// The wire contract as a table: what is asked, and what must come back.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/http.h"

namespace tollgate::test {

struct Case {
  // Section of the specification, two underscores, what the case is.
  std::string name;
  // Of the facts (tests/support/facts.h); empty: no key is sent.
  std::string key;
  std::string method = "POST";
  std::string target = "/v1/chat/completions";
  HeaderList headers = {};
  // $M is the model. With $S the case is asked twice: $S is "" and then ,"stream":true.
  std::string body = "";
  // Hostile framing: these bytes instead of a request. The connection must be closed.
  std::string bytes = "";
  // A body that is sent before, with the same key.
  std::string before = "";
  bool simulated = false;  // needs the simulated engine or its catalog

  int status = 200;
  // Of the error; empty when the answer is none.
  std::string code = "";
  std::string type = "";
  std::string param = "";
  // Of Retry-After: "" absent, "*" whole seconds from 1 to 60, "?" absent or such, else exactly it.
  std::string retry_after = "";
  // Path in the body (choices.0.index) and its JSON; "*": anything but null; "": not there.
  std::vector<std::pair<std::string, std::string>> members = {};
  // "duration": a form such as 250ms, 6s or 6m0s.
  HeaderList expected_headers = {};
};

const std::vector<Case>& Cases();

}  // namespace tollgate::test
