// Plain-text mails, sent with libcurl. Calls block: never on a loop or a gRPC thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/error/error.h"

namespace tollgate::mail {

struct MailServer {
  std::string url;  // smtp://host:port or smtps://host:port; empty: no mails
  std::string user;
  std::string password;  // never logged
  std::string from;
  // PEM file of the authorities for the server's certificate; empty: those of the system.
  std::string authority_file = {};
};

// One plain mailbox, local@domain: no spaces, quotes, brackets, commas or line ends, so that it is
// safe in a header and in an SMTP command.
bool IsEmail(std::string_view text);

// Cleans text that a person wrote: one line of valid UTF-8, at most max_bytes long.
std::string OneLine(std::string_view text, size_t max_bytes);

// Whether the host of a URL is "localhost" or a literal loopback address.
bool IsLoopbackHost(std::string_view host);

// Checks url and from, and that user and password are both set or both missing, and reads the
// password. field: settings named in the error, for example "billing.alerts".
Result<void> CheckMailServer(const std::string& field, const std::string& password_file,
                             MailServer& server);

struct Mail {
  std::string from;
  std::string to;
  std::string subject;  // one line of ASCII
  std::string id;       // left of the @ of the Message-ID; the same for every attempt of a mail
  int64_t at_us = 0;
  std::string body;  // lines end with \r\n
};
// Header and body with CRLF. from and to have been checked with IsEmail.
std::string MailText(const Mail& mail);

struct Sent {
  bool ok = false;
  std::string result;  // "accepted" or "failed: …"; never text from the receiver
};
// text: output of MailText. TLS is required unless the server is on this machine's loopback and no
// authority is set. abort: becoming true ends the call within about a second; may be null.
Sent SendMail(const MailServer& server, const std::string& to, const std::string& text,
              int timeout_ms, const std::atomic<bool>* abort = nullptr);

}  // namespace tollgate::mail
