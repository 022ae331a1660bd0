#include "common/http/http_call.h"

#include <curl/curl.h>

#include <memory>
#include <mutex>

#include "common/base/clock.h"

namespace tollgate::http {
namespace {

constexpr size_t kMaxAnswer = size_t{4} << 20;

// State of the callback that receives the body.
struct Received {
  HttpAnswer& answer;
  const int64_t sent_us;
};

size_t Append(char* data, size_t size, size_t count, void* into) {
  const auto* received = static_cast<Received*>(into);
  std::string& body = received->answer.body;
  if (body.empty()) {
    received->answer.first_byte_us = SystemClock::Get().MonotonicUs() - received->sent_us;
  }
  if (body.size() + size * count > kMaxAnswer) return 0;
  body.append(data, size * count);
  return size * count;
}

int Progress(void* abort, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::atomic<bool>*>(abort)->load() ? 1 : 0;
}

std::string Encode(const Form& form) {
  std::string text;
  for (const auto& [name, value] : form) {
    if (!text.empty()) text += '&';
    text += PercentEncode(name) + '=' + PercentEncode(value);
  }
  return text;
}

bool NothingWasSent(CURLcode code) {
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return true;
    default:
      return false;
  }
}

struct CloseHandle {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};
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

}  // namespace

std::string PercentEncode(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
        c == '_' || c == '.' || c == '~') {
      out += c;
    } else {
      out += '%';
      out += kDigits[static_cast<unsigned char>(c) >> 4];
      out += kDigits[static_cast<unsigned char>(c) & 15];
    }
  }
  return out;
}

HttpAnswer Send(const HttpCall& call) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  HttpAnswer answer;
  const std::unique_ptr<CURL, CloseHandle> curl(curl_easy_init());
  if (!curl) {
    answer.outcome = HttpAnswer::Outcome::kNotSent;
    answer.error = "libcurl has no handle";
    return answer;
  }
  const std::string form = Encode(call.form);
  const std::string& content = call.json.empty() ? form : call.json;
  Received received{answer, SystemClock::Get().MonotonicUs()};
  std::string url = call.url;
  List headers;
  if (!call.bearer.empty()) Add(headers, "Authorization: Bearer " + call.bearer);
  Add(headers, "Expect:");
  for (const auto& [name, value] : call.headers) Add(headers, name + ": " + value);
  if (call.method == "POST") {
    if (!call.json.empty()) Add(headers, "Content-Type: application/json");
    curl_easy_setopt(curl.get(), CURLOPT_POST, 1L);
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(content.size()));
    curl_easy_setopt(curl.get(), CURLOPT_COPYPOSTFIELDS, content.c_str());
  } else {
    if (!form.empty()) url += "?" + form;
    if (call.method != "GET") {
      curl_easy_setopt(curl.get(), CURLOPT_CUSTOMREQUEST, call.method.c_str());
    }
  }
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &Append);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &received);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  // Keeps the system's authorities: Debian's libcurl has them in a folder, which stays set.
  if (!call.authority_file.empty()) {
    curl_easy_setopt(curl.get(), CURLOPT_CAINFO, call.authority_file.c_str());
  }
  if (!call.use_proxy) curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(call.connect_timeout_ms));
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(call.timeout_ms));
  if (call.abort != nullptr) {
    curl_easy_setopt(curl.get(), CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, &Progress);
    // libcurl's data pointer is not const.
    curl_easy_setopt(curl.get(), CURLOPT_XFERINFODATA, const_cast<std::atomic<bool>*>(call.abort));
  }
  const CURLcode code = curl_easy_perform(curl.get());
  if (code != CURLE_OK) {
    answer.outcome =
        NothingWasSent(code) ? HttpAnswer::Outcome::kNotSent : HttpAnswer::Outcome::kLost;
    answer.error = curl_easy_strerror(code);
    return answer;
  }
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  answer.outcome = HttpAnswer::Outcome::kAnswered;
  answer.status = static_cast<int>(status);
  return answer;
}

}  // namespace tollgate::http
