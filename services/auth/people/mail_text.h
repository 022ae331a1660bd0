// What the mails to people say. Plain text; nothing in them is what another person wrote, except
// for addresses and ids that are checked. Pure.
#pragma once

#include <string>
#include <string_view>

namespace tollgate::auth {

struct MailContent {
  std::string subject;
  std::string body;  // lines end with \r\n
};

// inviter: the e-mail address of who invites; empty: an operator.
MailContent InvitationMail(std::string_view inviter, std::string_view workspace,
                           std::string_view role, std::string_view link);
// address: of the client that asked.
MailContent PasswordResetMail(std::string_view link, std::string_view address);
// For a person who signs in with the provider and has no password.
MailContent NoPasswordMail(std::string_view address);

// Changes that a person is told of: whoever takes an account over would make them.
enum class SecurityChange { kPassword, kTotpOn, kTotpOff, kTotpReset, kToken };
// address: of the client that made it; empty: not known.
MailContent SecurityMail(SecurityChange change, std::string_view address);

}  // namespace tollgate::auth
