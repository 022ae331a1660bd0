// One request under /session/v1/ and its answers. Used only by the files of SessionApi.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "common/json/json.h"
#include "services/dashboard/http/page.h"
#include "services/dashboard/session/form_page.h"
#include "services/dashboard/session/session_api.h"
#include "services/dashboard/session/session_errors.h"

namespace tollgate::dashboard {

// A request with its body.
struct SessionApi::Call {
  const http::HttpRequest& request;
  Loop& loop;
  std::string cookie;
  std::optional<json::Document> body;
  // The page of a posted form; null: the body is JSON.
  const FormPage* page = nullptr;

  // A text of the body; "" if there is none.
  std::string Text(const char* name) const {
    if (page != nullptr) return ParameterOf(request.body, name);
    if (!body) return "";
    const json::Value value = body->root().Find(name);
    return value && value.is_string() ? value.string() : "";
  }
  // A parameter of the query.
  std::string Parameter(std::string_view name) const { return ParameterOf(request.query, name); }
  void Fill(auth::v1::Client& client) const {
    client.set_address(request.peer_address);
    client.set_user_agent(std::string(request.header("user-agent").substr(0, 200)));
    client.set_cookie(cookie);
  }
};

inline http::HttpResponse Json(int status, std::string body) {
  http::HttpResponse response{.status = status, .body = std::move(body)};
  response.headers.emplace_back("content-type", "application/json");
  AddSecurityHeaders(response.headers);
  return response;
}

inline http::HttpResponse Failure(const grpc::Status& status) {
  const RenderedStatus rendered = Render(status);
  http::HttpResponse response = Json(rendered.http_status, rendered.body);
  if (rendered.retry_after_seconds > 0) {
    response.headers.emplace_back("retry-after", std::to_string(rendered.retry_after_seconds));
  }
  return response;
}

inline http::HttpResponse Refuse(grpc::StatusCode code, const char* reason, const char* message) {
  return Failure(MakeStatus(code, reason, message));
}

// Redirects to a page of the dashboard. With 303 the browser sends a GET.
inline http::HttpResponse Redirect(std::string to) {
  http::HttpResponse response{.status = 303};
  response.headers.emplace_back("location", std::move(to));
  AddSecurityHeaders(response.headers);
  return response;
}

// Page that shows an error or asks for the second step. The text is after "#", so that no server or
// log sees it.
inline std::string SignInPage(const std::string& what) { return "/#/sign-in/" + what; }

}  // namespace tollgate::dashboard
