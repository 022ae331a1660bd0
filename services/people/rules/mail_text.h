// Texts of the mails to people. Plain text. They contain no text of other people except checked
// addresses and ids. Pure.
#pragma once

#include <string>
#include <string_view>

namespace tollgate::people {

struct MailContent {
  std::string subject;
  std::string body;  // lines end with \r\n
};

// inviter: e-mail address of the inviter; empty: an operator.
MailContent InvitationMail(std::string_view inviter, std::string_view workspace,
                           std::string_view role, std::string_view link);
// address: network address of the client that asked.
MailContent PasswordResetMail(std::string_view link, std::string_view address);
// For a person who signs in with the provider and has no password.
MailContent NoPasswordMail(std::string_view address);

// Changes that the person is notified of, because an attacker who takes over an account would make
// them.
enum class SecurityChange { kPassword, kTotpOn, kTotpOff, kTotpReset, kToken };
// address: network address of the client that made the change; empty: unknown.
MailContent SecurityMail(SecurityChange change, std::string_view address);

}  // namespace tollgate::people
