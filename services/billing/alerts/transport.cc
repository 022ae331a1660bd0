#include "services/billing/alerts/transport.h"

#include <curl/curl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <mutex>

#include "common/base/crypto.h"
#include "services/billing/alerts/receiver_rules.h"

namespace tollgate::billing::alerts {
namespace {

constexpr size_t kMaxAnswer = 64 * 1024;

struct CloseHandle {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};
using Handle = std::unique_ptr<CURL, CloseHandle>;
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using List = std::unique_ptr<curl_slist, FreeList>;

void Add(List& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  if (longer == nullptr) return;
  static_cast<void>(list.release());
  list.reset(longer);
}

size_t Discard(char*, size_t size, size_t count, void* seen) {
  auto& total = *static_cast<size_t*>(seen);
  total += size * count;
  return total > kMaxAnswer ? 0 : size * count;
}

struct Door {
  bool allow_private = false;
  bool only_loopback = false;  // plain http
  bool refused = false;
};
curl_socket_t OpenSocket(void* context, curlsocktype, curl_sockaddr* address) {
  auto& door = *static_cast<Door*>(context);
  const bool open = door.only_loopback ? IsLoopbackPeer(address->addr)
                                       : door.allow_private || IsPublicPeer(address->addr);
  if (!open) {
    door.refused = true;
    return CURL_SOCKET_BAD;
  }
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

Handle NewHandle(int timeout_ms) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  Handle curl(curl_easy_init());
  if (!curl) return curl;
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(timeout_ms));
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(timeout_ms));
  return curl;
}

// The text is one of libcurl's fixed texts and contains no data of the receiver.
std::string Failed(CURLcode code) { return std::string("failed: ") + curl_easy_strerror(code); }

}  // namespace

Sent SendWebhook(const WebhookCall& call) {
  if (const std::string wrong = CheckWebhookUrl(call.url, call.allow_private); !wrong.empty()) {
    return {false, "refused: " + wrong};
  }
  const Handle curl = NewHandle(call.timeout_ms);
  if (!curl) return {false, "failed: libcurl has no handle"};
  List headers;
  Add(headers, "content-type: application/json");
  Add(headers, "user-agent: tollgate");
  Add(headers, "tollgate-notice: " + call.notice);
  Add(headers, "tollgate-signature: " + call.signature);
  Add(headers, "Expect:");
  size_t seen = 0;
  Door door;
  door.allow_private = call.allow_private;
  door.only_loopback =
      call.url.compare(0, 6, "https:") != 0 && call.url.compare(0, 6, "HTTPS:") != 0;
  curl_easy_setopt(curl.get(), CURLOPT_URL, call.url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl.get(), CURLOPT_POST, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(call.body.size()));
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, call.body.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &Discard);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &seen);
  curl_easy_setopt(curl.get(), CURLOPT_OPENSOCKETFUNCTION, &OpenSocket);
  curl_easy_setopt(curl.get(), CURLOPT_OPENSOCKETDATA, &door);
  const CURLcode code = curl_easy_perform(curl.get());
  if (door.refused && code != CURLE_OK) return {false, "refused: the host is not a public address"};
  // A response that is too long counts by its status; the rest is not read.
  if (code != CURLE_OK && code != CURLE_WRITE_ERROR) return {false, Failed(code)};
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  return {status >= 200 && status < 300, std::to_string(status)};
}

std::string Sign(const std::string& secret, int64_t unix_seconds, std::string_view body) {
  const std::string time = std::to_string(unix_seconds);
  return "t=" + time + ",v1=" + HexEncode(HmacSha256(secret, time + "." + std::string(body)));
}

}  // namespace tollgate::billing::alerts
