#include "services/dashboard/http/site.h"

#include "common/base/crypto.h"
#include "common/json/writer.h"
#include "common/observability/log.h"
#include "common/observability/metrics.h"
#include "services/dashboard/http/admin_call.h"
#include "services/dashboard/http/admin_render.h"
#include "services/dashboard/http/page.h"

namespace tollgate::dashboard {
namespace {

http::HttpResponse Make(int status, std::string_view type, std::string body) {
  http::HttpResponse response{.status = status, .body = std::move(body)};
  response.headers.emplace_back("content-type", type);
  AddSecurityHeaders(response.headers);
  return response;
}

http::HttpResponse JsonAnswer(int status, std::string body) {
  return Make(status, "application/json", std::move(body) + "\n");
}

http::HttpResponse ErrorAnswer(const Error& error) {
  http::HttpResponse response = JsonAnswer(error.row().http_status, Render(error));
  if (error.retry_after_ms > 0) {
    response.headers.emplace_back("retry-after",
                                  std::to_string((error.retry_after_ms + 999) / 1000));
  }
  return response;
}

// Not a row of the public catalog: that one is about virtual keys.
http::HttpResponse LoginAnswer() {
  const std::string error = json::Writer()
                                .Text("message",
                                      "Log in with the header \"Authorization: Bearer "
                                      "LOGIN_TOKEN\"; the token is in the dashboard's "
                                      "configuration.")
                                .Text("type", "authentication_error")
                                .Text("code", "login_required")
                                .Null("param")
                                .Done();
  http::HttpResponse response = JsonAnswer(401, json::Writer().Raw("error", error).Done());
  response.headers.emplace_back("www-authenticate", "Bearer realm=\"tollgate-admin\"");
  return response;
}

template <typename Response>
http::HttpResponse ToAnswer(int status, const Result<Response>& result) {
  if (result) return JsonAnswer(status, Render(*result));
  if (result.error().id == ErrorId::kServerError) {
    log::Error("admin call failed", {{"error", result.error().ToString()}});
  }
  return ErrorAnswer(result.error());
}

void CountLogin(const std::string& result) {
  metrics::Counter("tollgate_dashboard_logins_total",
                   "Requests to the admin API, by what became of their token.",
                   {{"result", result}})
      .Increment();
}

// One overload per call. Free functions with parameters by value: a coroutine must own what it
// uses.
Task<http::HttpResponse> Run(auth::v1::ListWorkspacesRequest call, Backends backends) {
  co_return ToAnswer(200, co_await backends.auth.ListWorkspaces(std::move(call)));
}
Task<http::HttpResponse> Run(auth::v1::CreateWorkspaceRequest call, Backends backends) {
  co_return ToAnswer(201, co_await backends.auth.CreateWorkspace(std::move(call)));
}
Task<http::HttpResponse> Run(auth::v1::ListKeysRequest call, Backends backends) {
  co_return ToAnswer(200, co_await backends.auth.ListKeys(std::move(call)));
}
Task<http::HttpResponse> Run(auth::v1::CreateKeyRequest call, Backends backends) {
  co_return ToAnswer(201, co_await backends.auth.CreateKey(std::move(call)));
}
Task<http::HttpResponse> Run(auth::v1::SetKeyStateRequest call, Backends backends) {
  co_return ToAnswer(200, co_await backends.auth.SetKeyState(std::move(call)));
}
Task<http::HttpResponse> Run(auth::v1::ListAuditEventsRequest call, Backends backends) {
  co_return ToAnswer(200, co_await backends.auth.ListAuditEvents(std::move(call)));
}
Task<http::HttpResponse> Run(billing::v1::AddCreditRequest call, Backends backends) {
  co_return ToAnswer(200, co_await backends.billing.AddCredit(std::move(call)));
}
Task<http::HttpResponse> Run(billing::v1::SetCapRequest call, Backends backends) {
  co_return ToAnswer(200, co_await backends.billing.SetCap(std::move(call)));
}
Task<http::HttpResponse> Run(billing::v1::GetBalanceRequest call, Backends backends) {
  co_return ToAnswer(200, co_await backends.billing.GetBalance(std::move(call)));
}
Task<http::HttpResponse> Run(billing::v1::VerifyLedgerRequest call, Backends backends) {
  co_return ToAnswer(200, co_await backends.billing.VerifyLedger(std::move(call)));
}

}  // namespace

Site::Site(Options options)
    : options_(std::move(options)),
      token_digest_(Sha256(options_.login_token)),
      page_(PageHtml(options_.base_url)) {}

http::HttpResponse Site::RenderError(const Error& error) { return ErrorAnswer(error); }

void Site::SetCatalog(catalog::v1::Snapshot snapshot) {
  auto shared = std::make_shared<const catalog::v1::Snapshot>(std::move(snapshot));
  std::lock_guard lock(mutex_);
  catalog_ = std::move(shared);
}

bool Site::LoggedIn(const http::HttpRequest& request) const {
  constexpr std::string_view kScheme = "Bearer ";
  std::string_view token = request.header("authorization");
  const bool bearer = token.starts_with(kScheme);
  if (bearer) token.remove_prefix(kScheme.size());
  // Hashes have one length, so the comparison tells nothing about the token's.
  const bool equal = ConstantTimeEquals(Sha256(token), token_digest_);
  return bearer && equal && !options_.login_token.empty();
}

Task<http::HttpResponse> Site::Answer(const http::HttpRequest& request, Backends backends) {
  if (request.path.starts_with(kAdminPath)) co_return co_await AnswerAdmin(request, backends);
  const bool get = request.method == "GET";
  if (get && request.path == "/") co_return Make(200, "text/html; charset=utf-8", page_);
  if (get && request.path == "/style.css") {
    co_return Make(200, "text/css; charset=utf-8", std::string(PageCss()));
  }
  co_return ErrorAnswer(Error{.id = ErrorId::kNotFound, .message = "There is no such page."});
}

Task<http::HttpResponse> Site::AnswerAdmin(const http::HttpRequest& request, Backends backends) {
  // Before anything else is looked at: a stranger learns nothing about paths.
  const int64_t now_us = options_.clock->MonotonicUs();
  if (const int64_t wait_us = guesses_.Wait(request.peer_address, now_us); wait_us > 0) {
    CountLogin("throttled");
    co_return ErrorAnswer(Error{.id = ErrorId::kRateLimited,
                                .message = "Too many attempts to log in with a wrong token.",
                                .retry_after_ms = (wait_us + 999) / 1000});
  }
  if (!LoggedIn(request)) {
    CountLogin("refused");
    // Without any token nothing was guessed.
    if (!request.header("authorization").empty()) guesses_.Take(request.peer_address, now_us);
    co_return LoginAnswer();
  }
  CountLogin("accepted");
  auto call = ParseAdminCall(request);
  if (!call) co_return ErrorAnswer(call.error());
  if (std::holds_alternative<catalog::v1::GetCatalogRequest>(*call)) {
    std::unique_lock lock(mutex_);
    const auto snapshot = catalog_;
    lock.unlock();
    if (!snapshot) co_return ErrorAnswer(Unavailable("no catalog yet").error);
    co_return JsonAnswer(200, Render(*snapshot));
  }
  // The task is made first and awaited on its own: the visitor's temporaries are gone by then.
  Task<http::HttpResponse> task = std::visit(
      [&backends](auto& message) -> Task<http::HttpResponse> {
        using Message = std::decay_t<decltype(message)>;
        if constexpr (std::is_same_v<Message, catalog::v1::GetCatalogRequest>) {
          return {};
        } else {
          return Run(std::move(message), backends);
        }
      },
      *call);
  co_return co_await std::move(task);
}

}  // namespace tollgate::dashboard
