// The public endpoints: which surface answers what, and in whose manner errors are told. Paths
// match exactly as sent; anything else is 404 not_found (decisions.md 16).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/runtime/task.h"
#include "gateway/edge/exchange.h"

namespace tollgate::gateway {

// Decides the error envelope.
enum class Family : uint8_t { kOpenAi, kMessages };

// Where a virtual key is looked for (gateway-spec.md "Authentication").
enum class CredentialRule : uint8_t {
  kBearer,          // Authorization: Bearer only
  kBearerOrApiKey,  // x-api-key too (decisions.md 12)
  kOptionalBearer,  // public; a bad key is ignored (decisions.md 13)
};

struct Endpoint {
  std::string method;  // "GET", "POST"
  std::string path;
  // For metrics and logs, for example "chat_completions". From a small closed set.
  std::string name;
  Family family = Family::kOpenAi;
  CredentialRule credential = CredentialRule::kBearer;
  std::function<Task<void>(Exchange&, const Endpoint&)> handler;
};

class EndpointTable {
 public:
  // Before the edge starts.
  void Add(Endpoint endpoint) { rows_.push_back(std::move(endpoint)); }
  const std::vector<Endpoint>& rows() const { return rows_; }
  // The row's index; -1 when nothing matches.
  int Find(std::string_view method, std::string_view path) const;

 private:
  std::vector<Endpoint> rows_;
};

// Of any path, known or not: Messages under /v1/messages, OpenAI's everywhere else.
Family FamilyOfPath(std::string_view path);

}  // namespace tollgate::gateway
