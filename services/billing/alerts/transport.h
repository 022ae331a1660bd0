// Sends one mail or one webhook with libcurl. Calls block.
#pragma once

#include <string>
#include <string_view>

namespace tollgate::billing::alerts {

struct MailServer {
  std::string url;  // smtp://host:port or smtps://host:port; empty: no mails
  std::string user;
  std::string password;  // never logged
  std::string from;
};

struct Sent {
  bool ok = false;
  std::string result;  // "200", "503", "the connection failed", …; never content of the receiver
};

// message: header and body with CRLF. TLS is required unless the server is on this machine's
// loopback.
Sent SendMail(const MailServer& server, const std::string& to, const std::string& message,
              int timeout_ms);

struct WebhookCall {
  std::string url;
  std::string body;
  std::string signature;  // the header's value
  std::string notice;
  int timeout_ms = 10'000;
  // Also to addresses that are not public.
  bool allow_private = false;
};
// Only 2xx is ok. Redirects are not followed, and the answer is not read beyond 64 KiB. The address
// is judged when the connection is made: a name cannot change its address in between.
Sent SendWebhook(const WebhookCall& call);

// "t=UNIX,v1=HEX" with the HMAC-SHA256 of "UNIX.body".
std::string Sign(const std::string& secret, int64_t unix_seconds, std::string_view body);

}  // namespace tollgate::billing::alerts
