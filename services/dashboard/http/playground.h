// /playground/v1/*: passes inference requests of the dashboard's page to the gateway's public
// address unchanged, with the key that the page sends (decision 63).
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/error/error.h"
#include "common/http/client.h"
#include "common/http/exchange.h"
#include "common/runtime/loop.h"

namespace tollgate::dashboard {

inline constexpr std::string_view kPlaygroundPath = "/playground/";

class Playground {
 public:
  struct Options {
    // URL of the gateway; empty: every request gets 404.
    std::string gateway_url;
    std::string public_url;  // the dashboard's address; see IsSameOrigin
    // Concurrent requests; more get 503.
    int max_requests = 64;
  };
  // Fails for an invalid URL. Stop must be called before the loops stop.
  static Result<std::unique_ptr<Playground>> Make(LoopPool& loops, Options options);

  // Streams the gateway's answer. If the browser disconnects, the gateway's request is cancelled.
  Task<void> Serve(http::Exchange& exchange);
  // Call it after the last request, on a thread that is not a loop's.
  void Stop();

 private:
  Playground(LoopPool& loops, Options options) : loops_(loops), options_(std::move(options)) {}
  http::ClientRequest RequestTo(const http::BaseUrl& gateway, http::HttpRequest& request) const;
  Task<void> Pass(http::Exchange& exchange);

  LoopPool& loops_;
  const Options options_;
  std::optional<http::BaseUrl> gateway_;
  std::vector<std::unique_ptr<http::Client>> clients_;  // by loop index
  std::atomic<int> running_{0};
};

}  // namespace tollgate::dashboard
