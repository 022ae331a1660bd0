#include "services/dashboard/session/form_page.h"

#include <algorithm>

#include "common/base/crypto.h"
#include "services/dashboard/http/page.h"

namespace tollgate::dashboard {
namespace {

// Our secrets are shorter. A longer one is cut, and is invalid anyway.
constexpr size_t kMaxSecret = 200;

const std::vector<FormPage>& Pages() {
  static const std::vector<FormPage> pages = {
      {.path = "link",
       .title = "Sign in",
       .lead = "This link signs you in once.",
       .button = "Sign in",
       .secret = "token",
       .web_path = "/link",
       .fields = {}},
      {.path = "secondStep",
       .title = "Two-factor authentication",
       .lead = "Enter the six digits from your authenticator app, or a recovery code.",
       .button = "Sign in",
       .secret = "challenge",
       .web_path = nullptr,
       .fields = {{"code", "Authentication code", "text", "one-time-code"},
                  {"recovery_code", "Recovery code", "text", "off"}}},
      {.path = "invitation",
       .title = "Accept invitation",
       .lead = "Choose a password to create your account. If you already have an account, sign in "
               "and accept the invitation there.",
       .button = "Create account",
       .secret = "token",
       .web_path = "/invitation",
       .fields = {{"display_name", "Your name", "text", "name"},
                  {"password", "Password, at least 10 characters", "password", "new-password"}}},
      {.path = "resetPassword",
       .title = "Set a new password",
       .lead = "A new password ends all your sessions.",
       .button = "Set password",
       .secret = "token",
       .web_path = "/reset-password",
       .fields = {{"new_password", "New password, at least 10 characters", "password",
                   "new-password"}}},
  };
  return pages;
}

std::string Decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      std::string hex(text.substr(i + 1, 2));
      for (char& c : hex) c = c >= 'A' && c <= 'F' ? static_cast<char>(c | 0x20) : c;
      if (const auto byte = HexDecode(hex)) {
        out += *byte;
        i += 2;
        continue;
      }
    }
    out += text[i] == '+' ? ' ' : text[i];
  }
  return out;
}

void AddHeaders(http::Headers& headers) {
  AddSecurityHeaders(headers);
  for (auto& [name, value] : headers) {
    if (name == "content-security-policy") {
      value =
          "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
          "form-action 'self'";
    }
    // With no-referrer, browsers would send the form with "Origin: null", which cannot be checked.
    // same-origin discloses the link's address to this origin only.
    if (name == "referrer-policy") value = "same-origin";
  }
  headers.emplace_back("content-type", "text/html; charset=utf-8");
}

}  // namespace

const FormPage* FindFormPage(std::string_view path) {
  const auto found = std::ranges::find(Pages(), path, &FormPage::path);
  return found == Pages().end() ? nullptr : &*found;
}

std::string WebAddress(const FormPage& page, std::string_view secret) {
  std::string address = std::string(page.web_path) + "#" + page.secret + "=";
  for (const char c : secret.substr(0, kMaxSecret)) {
    // Our secrets contain only these characters.
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       c == '-' || c == '_' || c == '.';
    if (plain) address += c;
  }
  return address;
}

http::HttpResponse RenderFormPage(const FormPage& page, std::string_view secret, int status,
                                  std::string_view problem) {
  std::string html =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"robots\" content=\"noindex\">\n<title>";
  html += std::string(page.title) +
          " · Tollgate</title>\n<link rel=\"stylesheet\" href=\"/style.css\">\n</head>\n<body>\n"
          "<main>\n<h1>" +
          page.title + "</h1>\n<p class=\"lead\">" + page.lead + "</p>\n";
  if (!problem.empty()) html += "<p role=\"alert\">" + EscapeHtml(problem) + "</p>\n";
  html += "<form method=\"post\" action=\"/session/v1/" + std::string(page.path) +
          "\">\n<input type=\"hidden\" name=\"" + page.secret + "\" value=\"" +
          EscapeHtml(secret.substr(0, kMaxSecret)) + "\">\n";
  for (const FormField& field : page.fields) {
    html += std::string("<p><label>") + field.label + "<br><input name=\"" + field.name +
            "\" type=\"" + field.type + "\" autocomplete=\"" + field.autocomplete +
            "\"></label></p>\n";
  }
  html += std::string("<p><button>") + page.button +
          "</button></p>\n</form>\n</main>\n</body>\n</html>\n";
  http::HttpResponse response{.status = status, .body = std::move(html)};
  AddHeaders(response.headers);
  return response;
}

std::string ParameterOf(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const size_t equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) == name) {
      return Decoded(pair.substr(std::min(equals + 1, pair.size())));
    }
  }
  return "";
}

}  // namespace tollgate::dashboard
