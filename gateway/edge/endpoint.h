// The table of public endpoints: path, handler, error envelope, and where the key is sent. Paths
// match byte for byte; anything else is 404 not_found (decision 16).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/runtime/task.h"
#include "gateway/edge/exchange.h"

namespace tollgate::gateway {

// The API family of an endpoint, which selects the error envelope.
enum class Family : uint8_t { kOpenAi, kMessages };

// Which headers may carry the virtual key (docs/contract.md "Authentication").
enum class CredentialRule : uint8_t {
  kBearer,          // Authorization: Bearer only
  kBearerOrApiKey,  // x-api-key too (decision 12)
  kOptionalBearer,  // public; an invalid key is ignored (decision 13)
  kNone,            // public; no key is read
};

struct Endpoint {
  std::string method;  // "GET", "POST"
  std::string path;
  // Label of metrics and logs, for example "chat_completions".
  std::string name;
  Family family = Family::kOpenAi;
  CredentialRule credential = CredentialRule::kBearer;
  std::function<Task<void>(Exchange&, const Endpoint&)> handler;
  // Probes are sent all the time by machines; they are logged at debug level only.
  bool is_probe = false;
};

class EndpointTable {
 public:
  // Call before the edge starts.
  void Add(Endpoint endpoint) { rows_.push_back(std::move(endpoint)); }
  const std::vector<Endpoint>& rows() const { return rows_; }
  // Returns the row's index, or -1 when nothing matches. HEAD matches the row of GET: the server
  // omits the body.
  int Find(std::string_view method, std::string_view path) const;

 private:
  std::vector<Endpoint> rows_;
};

// The family of any path, known or not: Messages under /v1/messages, OpenAI elsewhere.
Family FamilyOfPath(std::string_view path);

}  // namespace tollgate::gateway
