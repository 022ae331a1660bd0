#include "services/dashboard/http/site.h"

#include <variant>

#include "common/json/writer.h"
#include "common/observability/log.h"
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

http::HttpResponse JsonResponse(int status, std::string body) {
  return Make(status, "application/json", std::move(body) + "\n");
}

http::HttpResponse ErrorResponse(const Error& error) {
  http::HttpResponse response = JsonResponse(error.row().http_status, Render(error));
  if (error.retry_after_ms > 0) {
    response.headers.emplace_back("retry-after",
                                  std::to_string((error.retry_after_ms + 999) / 1000));
  }
  return response;
}

// Not a row of the error catalog: its 401 is about virtual keys.
http::HttpResponse LoginRequired() {
  const std::string error = json::Writer()
                                .Text("message",
                                      "Log in with the header \"Authorization: Bearer "
                                      "LOGIN_TOKEN\"; the token is in the dashboard's "
                                      "configuration.")
                                .Text("type", "authentication_error")
                                .Text("code", "login_required")
                                .Null("param")
                                .Done();
  http::HttpResponse response = JsonResponse(401, json::Writer().Raw("error", error).Done());
  response.headers.emplace_back("www-authenticate", "Bearer realm=\"tollgate-admin\"");
  return response;
}

template <typename Response>
http::HttpResponse ToResponse(int status, const Result<Response>& result) {
  if (result) return JsonResponse(status, Render(*result));
  if (result.error().id == ErrorId::kServerError) {
    log::Error("admin call failed", {{"error", result.error().ToString()}});
  }
  return ErrorResponse(result.error());
}

// One service call. By value: a coroutine must own what it uses.
template <typename Client, typename Request, typename Response>
Task<http::HttpResponse> Forward(int status, Client& client,
                                 Task<Result<Response>> (Client::*method)(Request),
                                 Request request) {
  co_return ToResponse(status, co_await (client.*method)(std::move(request)));
}

// Creates the workspace and opens its wallet (decision 64).
Task<http::HttpResponse> CreateWorkspace(Backends backends,
                                         auth::v1::CreateWorkspaceRequest request) {
  const auto created = co_await backends.auth.CreateWorkspace(std::move(request));
  if (created) {
    const std::string& id = created->workspace().workspace_id();
    if (auto opened = co_await backends.billing.OpenWallet(id); !opened) {
      Error error = opened.error();
      error.message = "The workspace " + id +
                      " was created, but its wallet could not be opened: repeat the call with the "
                      "same request_id, or run: tollgate workspace open " +
                      id;
      co_return ErrorResponse(error);
    }
  }
  co_return ToResponse(201, created);
}

// A row of the table of admin calls below: which method serves a request type, and the status of
// success.
template <typename Client, typename Request, typename Response>
auto Row(int status, Client& client, Task<Result<Response>> (Client::*method)(Request)) {
  return [=, &client](Request& request) {
    return Forward(status, client, method, std::move(request));
  };
}

template <typename... Rows>
struct Overloaded : Rows... {
  using Rows::operator()...;
};

}  // namespace

Site::Site(Options options)
    : options_(std::move(options)),
      login_(options_.login_token, *options_.clock),
      page_(PageHtml(options_.base_url)) {}

http::HttpResponse Site::RenderError(const Error& error) { return ErrorResponse(error); }

void Site::SetCatalog(catalog::v1::Snapshot snapshot) {
  auto shared = std::make_shared<const catalog::v1::Snapshot>(std::move(snapshot));
  std::lock_guard lock(mutex_);
  catalog_ = std::move(shared);
}

Task<http::HttpResponse> Site::Handle(const http::HttpRequest& request, Backends backends) {
  if (request.path.starts_with(kAdminPath)) co_return co_await HandleAdmin(request, backends);
  const bool get = request.method == "GET";
  if (get && request.path == "/") co_return Make(200, "text/html; charset=utf-8", page_);
  if (get && request.path == "/style.css") {
    co_return Make(200, "text/css; charset=utf-8", std::string(PageCss()));
  }
  co_return ErrorResponse(Error{.id = ErrorId::kNotFound, .message = "There is no such page."});
}

Task<http::HttpResponse> Site::HandleAdmin(const http::HttpRequest& request, Backends backends) {
  // Before the path is looked at: without a login every path gets the same response.
  const LoginToken::Answer login = login_.Check(request);
  if (login.verdict == LoginToken::Verdict::kThrottled) {
    co_return ErrorResponse(Error{.id = ErrorId::kRateLimited,
                                  .message = "Too many logins with a wrong token.",
                                  .retry_after_ms = login.wait_ms});
  }
  if (login.verdict == LoginToken::Verdict::kRefused) co_return LoginRequired();
  auto call = ParseAdminCall(request);
  if (!call) co_return ErrorResponse(call.error());
  using Auth = AuthAdminClient;
  using Billing = BillingAdminClient;
  // Awaited in its own statement, after the temporaries of the visit are gone.
  Task<http::HttpResponse> task =
      std::visit(Overloaded{
                     Row(200, backends.auth, &Auth::ListWorkspaces),
                     [backends](auth::v1::CreateWorkspaceRequest& request) {
                       return CreateWorkspace(backends, std::move(request));
                     },
                     Row(200, backends.auth, &Auth::ListKeys),
                     Row(201, backends.auth, &Auth::CreateKey),
                     Row(200, backends.auth, &Auth::SetKeyState),
                     Row(200, backends.auth, &Auth::ListAuditEvents),
                     Row(200, backends.billing, &Billing::AddCredit),
                     Row(200, backends.billing, &Billing::SetCap),
                     Row(200, backends.billing, &Billing::GetBalance),
                     Row(200, backends.billing, &Billing::VerifyLedger),
                     [this](catalog::v1::GetCatalogRequest&) { return HandleGetCatalog(); },
                 },
                 *call);
  co_return co_await std::move(task);
}

Task<http::HttpResponse> Site::HandleGetCatalog() {
  std::shared_ptr<const catalog::v1::Snapshot> snapshot;
  {
    std::lock_guard lock(mutex_);
    snapshot = catalog_;
  }
  if (!snapshot) co_return ErrorResponse(Unavailable("the catalog has not been loaded yet").error);
  co_return JsonResponse(200, Render(*snapshot));
}

}  // namespace tollgate::dashboard
