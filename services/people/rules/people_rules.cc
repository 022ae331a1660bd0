#include "services/people/rules/people_rules.h"

#include <algorithm>

#include "common/admin/access.h"
#include "common/base/ascii.h"
#include "common/base/base64.h"
#include "common/base/crypto.h"
#include "common/base/text.h"

namespace tollgate::people {
namespace {

constexpr size_t kMaxEmail = 254;
constexpr size_t kMinPassword = 10, kMaxPassword = 256;
constexpr size_t kMaxDisplayName = 100;
constexpr size_t kMaxScopes = 20;
constexpr int kRecoveryCodes = 10;

}  // namespace

AdminResult<std::string> NormalEmail(std::string_view text, std::string_view field) {
  const size_t at = text.find('@');
  const bool possible =
      text.size() <= kMaxEmail && IsVisibleText(text) && at != 0 && at != std::string_view::npos &&
      at + 1 < text.size() && text.find('@', at + 1) == std::string_view::npos &&
      std::ranges::none_of(text,
                           [](char c) { return c == ' ' || c == '<' || c == '>' || c == ','; });
  if (!possible) {
    return admin::InvalidField(std::string(field),
                               "an e-mail address such as anna@example.com "
                               "is required");
  }
  std::string email(text);
  for (char& c : email) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return email;
}

AdminResult<void> CheckPassword(std::string_view password, std::string_view email,
                                std::string_view field) {
  if (password.size() < kMinPassword || password.size() > kMaxPassword || !IsValidUtf8(password)) {
    return admin::InvalidField(std::string(field), "a password has 10 to 256 bytes",
                               "WEAK_PASSWORD");
  }
  const bool one_letter = password.find_first_not_of(password[0]) == std::string_view::npos;
  if (one_letter || password == email) {
    return admin::InvalidField(std::string(field),
                               "a password must not be the e-mail address or one repeated letter",
                               "WEAK_PASSWORD");
  }
  return {};
}

AdminResult<void> CheckDisplayName(std::string_view name, std::string_view field) {
  if (name.size() <= kMaxDisplayName && IsVisibleText(name)) return {};
  return admin::InvalidField(std::string(field),
                             "a name has at most 100 bytes and no control or invisible characters");
}

AdminResult<Role> ParseRole(std::string_view name, std::string_view field) {
  if (const auto role = admin::RoleNamed(name)) return *role;
  return admin::InvalidField(std::string(field),
                             "a role is owner, admin, billing, developer or viewer");
}

AdminResult<void> CheckScopes(const std::vector<std::string>& scopes,
                              const std::map<std::string, Role>& roles, bool platform_operator) {
  const auto bad = [](const std::string& message) {
    return admin::InvalidField("token.scopes", message);
  };
  if (scopes.size() > kMaxScopes) return bad("a token has at most 20 scopes");
  bool any_role = false;
  for (const std::string& scope : scopes) {
    if (const auto workspace = admin::WorkspaceOfName(scope)) {
      if (scope != "workspaces/" + *workspace) return bad("\"" + scope + "\" is not a workspace");
      if (!roles.contains(*workspace)) return bad("you are not a member of " + scope);
      continue;
    }
    any_role = true;
    if (scope == "operator") {
      if (!platform_operator) return bad("you are not an operator of the platform");
      continue;
    }
    const auto role = admin::RoleNamed(scope);
    if (!role)
      return bad("\"" + scope + "\" is not a scope; scopes are roles, operator and workspaces/ID");
    const bool has = std::ranges::any_of(
        roles, [&](const auto& member) { return admin::Covers(member.second, *role); });
    if (!has) return bad("you do not have the role " + scope + " in any workspace");
  }
  if (!any_role) return bad("a token needs at least one role among its scopes");
  return {};
}

bool MayManage(Role manager, Role role) {
  if (manager == Role::ROLE_OWNER) return true;
  return manager == Role::ROLE_ADMIN && role != Role::ROLE_OWNER && role != Role::ROLE_ADMIN;
}

std::string NewSecret() {
  std::string text = Base64Encode(RandomBytes(32));
  for (char& c : text) {
    if (c == '+') c = '-';
    if (c == '/') c = '_';
  }
  text.resize(text.find('='));
  return text;
}

std::string HashSecret(std::string_view secret) { return Sha256(secret); }

std::string CsrfToken(std::string_view cookie) {
  return HexEncode(HmacSha256(cookie, "tollgate csrf token"));
}

std::vector<std::string> NewRecoveryCodes() {
  // Leaves out characters that look alike.
  constexpr std::string_view kAlphabet = "abcdefghijkmnpqrstuvwxyz23456789";
  std::vector<std::string> codes;
  for (int i = 0; i < kRecoveryCodes; ++i) {
    std::string code;
    for (const char c : RandomBytes(10)) {
      if (code.size() == 5) code += '-';
      code += kAlphabet[static_cast<unsigned char>(c) % kAlphabet.size()];
    }
    codes.push_back(std::move(code));
  }
  return codes;
}

std::string NormalRecoveryCode(std::string_view code) {
  std::string normal;
  for (char c : code) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c != '-' && c != ' ') normal += c;
  }
  return normal;
}

int64_t WaitForTry(const TryLimit& limit, int64_t full_at_us, int64_t now_us) {
  const int64_t after = AfterTry(limit, full_at_us, now_us);
  return std::max<int64_t>(0, after - limit.interval_us * limit.burst - now_us);
}

int64_t AfterTry(const TryLimit& limit, int64_t full_at_us, int64_t now_us) {
  return std::max(full_at_us, now_us) + limit.interval_us;
}

}  // namespace tollgate::people
