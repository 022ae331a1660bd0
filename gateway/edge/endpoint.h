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
  // Called all the time by machines: in the access log at level debug only.
  bool is_probe = false;
};

class EndpointTable {
 public:
  // Not after the edge has started.
  void Add(Endpoint endpoint) { rows_.push_back(std::move(endpoint)); }
  const std::vector<Endpoint>& rows() const { return rows_; }
  // The row's index; -1 when nothing matches. HEAD is answered like GET: the server leaves the body
  // out.
  int Find(std::string_view method, std::string_view path) const;

 private:
  std::vector<Endpoint> rows_;
};

// The family of any path, also of unknown ones: Messages under /v1/messages, OpenAI elsewhere.
Family FamilyOfPath(std::string_view path);

}  // namespace tollgate::gateway
