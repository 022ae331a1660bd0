#include "services/dashboard/http/playground.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/try.h"
#include "common/http/tls.h"
#include "common/json/writer.h"
#include "common/observability/log.h"
#include "services/dashboard/http/page.h"
#include "services/dashboard/http/same_origin.h"
#include "services/dashboard/http/site.h"

namespace tollgate::dashboard {
namespace {

constexpr std::string_view kPrefix = "/playground";
constexpr std::string_view kServed = "/playground/v1/";

// Headers of one connection, or set again for each request.
constexpr std::array<std::string_view, 10> kOfConnection = {
    "connection",          "content-length",   "keep-alive", "proxy-authenticate",
    "proxy-authorization", "proxy-connection", "te",         "trailer",
    "transfer-encoding",   "upgrade"};
// Headers for the dashboard, and those that name the browser's page, which the gateway would treat
// as another site's (CORS).
constexpr std::array<std::string_view, 9> kForDashboard = {
    "cookie",  "expect", "forwarded",    "host",        "origin",
    "referer", "via",    "x-csrf-token", "x-request-id"};
// The dashboard sets its own values, and its pages must not get cookies from the gateway.
constexpr std::array<std::string_view, 12> kOwnAnswers = {"cache-control",
                                                          "content-security-policy",
                                                          "cross-origin-opener-policy",
                                                          "cross-origin-resource-policy",
                                                          "strict-transport-security",
                                                          "date",
                                                          "referrer-policy",
                                                          "request-id",
                                                          "set-cookie",
                                                          "x-content-type-options",
                                                          "x-frame-options",
                                                          "x-request-id"};

template <typename Names>
bool In(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Whether the Connection header names the field.
bool IsNamedBy(std::string_view connection, std::string_view field) {
  while (!connection.empty()) {
    const size_t comma = std::min(connection.find(','), connection.size());
    std::string_view name = connection.substr(0, comma);
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    if (std::ranges::equal(name, field, [](char a, char b) {
          return (a >= 'A' && a <= 'Z' ? static_cast<char>(a | 0x20) : a) == b;
        })) {
      return true;
    }
    connection.remove_prefix(std::min(comma + 1, connection.size()));
  }
  return false;
}

bool GoesToGateway(const http::HttpRequest& request, std::string_view name) {
  return !In(kOfConnection, name) && !In(kForDashboard, name) && !name.starts_with("sec-") &&
         !name.starts_with("x-forwarded-") && !IsNamedBy(request.header("connection"), name);
}

http::Headers AnswerHeaders(const http::ResponseHead& head) {
  http::Headers headers;
  for (const auto& [name, value] : head.headers) {
    if (In(kOfConnection, name) || In(kOwnAnswers, name) || name.starts_with("access-control-") ||
        IsNamedBy(head.header("connection"), name)) {
      continue;
    }
    headers.emplace_back(name, value);
  }
  AddSecurityHeaders(headers);
  return headers;
}

http::HttpResponse Refusal(ErrorId id, std::string message, int64_t retry_after_ms = 0) {
  Error error{.id = id, .message = std::move(message)};
  error.retry_after_ms = retry_after_ms;
  return Site::RenderError(error);
}

http::HttpResponse CrossSite() {
  http::HttpResponse response{.status = 403};
  const std::string inner =
      json::Writer()
          .Text("message", "The playground is for pages of the dashboard: call the API itself.")
          .Text("type", "permission_error")
          .Text("code", "cross_site_request")
          .Null("param")
          .Done();
  response.body = json::Writer().Raw("error", inner).Done() + "\n";
  response.headers.emplace_back("content-type", "application/json");
  AddSecurityHeaders(response.headers);
  return response;
}

// Counts a running request while it exists.
class Place {
 public:
  Place(std::atomic<int>& running, int most)
      : running_(running), taken_(running.fetch_add(1) < most) {}
  ~Place() { running_.fetch_sub(1); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  bool taken() const { return taken_; }

 private:
  std::atomic<int>& running_;
  const bool taken_;
};

}  // namespace

Result<std::unique_ptr<Playground>> Playground::Make(LoopPool& loops, Options options) {
  std::unique_ptr<Playground> made(new Playground(loops, std::move(options)));
  const std::string& url = made->options_.gateway_url;
  if (url.empty()) return made;
  made->gateway_ = http::ParseBaseUrl(url);
  if (!made->gateway_) {
    return Internal(
        "dashboard.gateway_url (or base_url) is not a URL such as http://gateway:8080: " + url);
  }
  http::ClientOptions client;
  if (made->gateway_->origin.tls) {
    TRY(auto tls, http::TlsClientContext::Make(""));
    client.tls = std::move(tls);
  }
  made->clients_.resize(loops.size());
  for (int i = 0; i < loops.size(); ++i) {
    loops.loop(i).RunAndWait(
        [&] { made->clients_[i] = std::make_unique<http::Client>(loops.loop(i), client); });
  }
  return made;
}

void Playground::Stop() {
  for (size_t i = 0; i < clients_.size(); ++i) {
    loops_.loop(static_cast<int>(i)).RunAndWait([&] { clients_[i].reset(); });
  }
  clients_.clear();
}

http::ClientRequest Playground::RequestTo(const http::BaseUrl& gateway,
                                          http::HttpRequest& request) const {
  http::ClientRequest to;
  to.method = request.method;
  to.origin = gateway.origin;
  to.target = gateway.path + request.path.substr(kPrefix.size());
  if (!request.query.empty()) to.target += "?" + request.query;
  for (const auto& [name, value] : request.headers) {
    if (GoesToGateway(request, name)) to.headers.emplace_back(name, value);
  }
  // The receipt is found by the id that the page sees.
  to.headers.emplace_back("x-request-id", request.x_request_id);
  // Used if gateway.trusted_proxies contains the dashboard.
  to.headers.emplace_back("x-forwarded-for", request.peer_address);
  to.body = std::move(request.body);
  return to;
}

Task<void> Playground::Serve(http::Exchange& exchange) {
  const http::HttpRequest& request = exchange.request();
  if (!request.path.starts_with(kServed) || !gateway_) {
    co_await exchange.Send(Refusal(ErrorId::kNotFound, "There is no such page."));
    co_return;
  }
  if (request.method != "GET" && request.method != "POST") {
    co_await exchange.Send(Refusal(ErrorId::kNotFound, "The playground accepts GET and POST."));
    co_return;
  }
  if (!IsSameOrigin(request, options_.public_url)) {
    co_await exchange.Send(CrossSite());
    co_return;
  }
  const Place place(running_, options_.max_requests);
  if (!place.taken()) {
    co_await exchange.Send(Refusal(ErrorId::kServiceUnavailable,
                                   "Too many requests of the playground are running. Try again.",
                                   1'000));
    co_return;
  }
  co_await Pass(exchange);
}

Task<void> Playground::Pass(http::Exchange& exchange) {
  http::ClientCall call(*clients_[exchange.loop().index()]);
  exchange.OnDisconnect([&call] { call.Abort(); });
  struct Unwatch {
    http::Exchange& exchange;
    ~Unwatch() { exchange.OnDisconnect({}); }
  } unwatch{exchange};
  http::ClientRequest request = RequestTo(*gateway_, exchange.mutable_request());
  auto head = co_await call.Send(std::move(request));
  if (exchange.disconnected()) co_return;
  if (!head.ok()) {
    log::Warn("the gateway cannot be reached for the playground",
              {{"error", head.error().message}});
    co_await exchange.Send(
        Refusal(ErrorId::kServiceUnavailable, "The gateway cannot be reached.", 1'000));
    co_return;
  }
  if (head->status == 204 || head->status == 304) {
    co_await exchange.Send({.status = head->status, .headers = AnswerHeaders(*head)});
    co_return;
  }
  if (!co_await exchange.BeginStream(head->status, AnswerHeaders(*head))) co_return;
  for (;;) {
    auto bytes = co_await call.ReadSome();
    if (exchange.disconnected()) co_return;
    if (!bytes.ok()) {
      // Abort, so that the page does not take the answer for complete.
      exchange.Abort();
      co_return;
    }
    if (bytes->empty()) break;
    if (!co_await exchange.Write(std::string(*bytes))) co_return;
  }
  co_await exchange.EndStream();
}

}  // namespace tollgate::dashboard
