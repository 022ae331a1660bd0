// Texts of the mails to people. Plain text. Of what other people wrote, only checked addresses and
// ids are included. Pure.
#pragma once

#include <string>
#include <string_view>

namespace tollgate::auth {

struct MailContent {
  std::string subject;
  std::string body;  // lines end with \r\n
};

// inviter: the inviter's email address; empty: an operator.
MailContent InvitationMail(std::string_view inviter, std::string_view workspace,
                           std::string_view role, std::string_view link);
// address: the client's IP address.
MailContent PasswordResetMail(std::string_view link, std::string_view address);
// For a person who signs in with SSO and has no password.
MailContent NoPasswordMail(std::string_view address);

// Changes that the person is notified of, because an attacker who takes over the account makes
// them.
enum class SecurityChange { kPassword, kTotpOn, kTotpOff, kTotpReset, kToken };
// address: the client's IP address; empty: unknown.
MailContent SecurityMail(SecurityChange change, std::string_view address);

}  // namespace tollgate::auth
