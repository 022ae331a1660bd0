// The HTTP handler of the dashboard: the page, and the admin API behind the login token.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "common/base/clock.h"
#include "common/clients/clients.h"
#include "common/http/exchange.h"
#include "services/dashboard/http/login_token.h"

namespace tollgate::dashboard {

// The clients of one loop.
struct Backends {
  AuthAdminClient& auth;
  BillingAdminClient& billing;
};

class Site {
 public:
  struct Options {
    // Empty: every login is refused.
    std::string login_token;
    std::string base_url;
    const Clock* clock = &SystemClock::Get();
  };
  explicit Site(Options options);

  // Sets the latest catalog. Thread-safe.
  void SetCatalog(catalog::v1::Snapshot snapshot);

  // Handles a request, which must outlive the task.
  Task<http::HttpResponse> Handle(const http::HttpRequest& request, Backends backends);

  // The response to a request that could not be read, or that failed.
  static http::HttpResponse RenderError(const Error& error);

  LoginToken& login() { return login_; }

 private:
  Task<http::HttpResponse> HandleAdmin(const http::HttpRequest& request, Backends backends);
  Task<http::HttpResponse> HandleGetCatalog();

  const Options options_;
  LoginToken login_;
  const std::string page_;
  std::mutex mutex_;
  std::shared_ptr<const catalog::v1::Snapshot> catalog_;
};

}  // namespace tollgate::dashboard
