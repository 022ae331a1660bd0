// Sends one webhook with libcurl. Calls block.
#pragma once

#include <string>
#include <string_view>

#include "common/mail/mail.h"

namespace tollgate::billing::alerts {

using mail::MailServer;
using mail::Sent;

struct WebhookCall {
  std::string url;
  std::string body;
  std::string signature;  // the header's value
  std::string notice;
  int timeout_ms = 10'000;
  // Also allows addresses that are not public.
  bool allow_private = false;
};
// Only 2xx is ok. Redirects are not followed, and the response is not read beyond 64 KiB. The
// address is checked when the connection is made, so a name cannot change its address in between.
Sent SendWebhook(const WebhookCall& call);

// Returns "t=UNIX,v1=HEX" with the HMAC-SHA256 of "UNIX.body".
std::string Sign(const std::string& secret, int64_t unix_seconds, std::string_view body);

}  // namespace tollgate::billing::alerts
