#include "common/mail/mail.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>

#include "common/base/text.h"
#include "common/base/try.h"

namespace tollgate::mail {
namespace {

constexpr size_t kMaxEmail = 254;
constexpr size_t kMaxSecretFile = 16 * 1024;

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

Result<std::string> ReadPassword(const std::string& field, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  // Reads at most one line. A folder is an error, not an exception.
  std::string text;
  std::getline(file, text);
  if (!text.empty() && text.back() == '\r') text.pop_back();
  if (file.bad() || text.size() > kMaxSecretFile || text.empty()) {
    return Internal(field + ".smtp_password_file: no password can be read from " + path);
  }
  return text;
}

// Format of RFC 5322; independent of the locale.
std::string MailDate(int64_t us) {
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t seconds = us / 1'000'000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[64];
  std::snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d +0000", kDays[utc.tm_wday],
                utc.tm_mday, kMonths[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min,
                utc.tm_sec);
  return text;
}

struct CloseHandle {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};
using Handle = std::unique_ptr<CURL, CloseHandle>;
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using List = std::unique_ptr<curl_slist, FreeList>;

struct Upload {
  std::string_view rest;
};
size_t Take(char* into, size_t size, size_t count, void* from) {
  auto& upload = *static_cast<Upload*>(from);
  const size_t length = std::min(size * count, upload.rest.size());
  std::memcpy(into, upload.rest.data(), length);
  upload.rest.remove_prefix(length);
  return length;
}

int Progress(void* abort, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::atomic<bool>*>(abort)->load() ? 1 : 0;
}

bool OnLoopback(const std::string& url) {
  const size_t start = url.find("://");
  if (start == std::string::npos) return false;
  std::string host = url.substr(start + 3);
  host = host.substr(0, host.find('/'));
  if (const size_t colon = host.rfind(':');
      colon != std::string::npos && host.find(']', colon) == std::string::npos) {
    host.resize(colon);
  }
  return IsLoopbackHost(host);
}

}  // namespace

bool IsEmail(std::string_view text) {
  const size_t at = text.find('@');
  if (text.size() > kMaxEmail || at == std::string_view::npos || at == 0 || at > 64) return false;
  const std::string_view domain = text.substr(at + 1);
  if (domain.empty() || domain.front() == '.' || domain.back() == '.' || domain.front() == '-') {
    return false;
  }
  for (const char c : text.substr(0, at)) {
    if (!IsWordCharacter(c) &&
        std::string_view("!#$%&'*+-/=?^_`{|}~.").find(c) == std::string_view::npos) {
      return false;
    }
  }
  for (const char c : domain) {
    if (!IsWordCharacter(c) && c != '.' && c != '-') return false;
  }
  return text.front() != '-';
}

std::string OneLine(std::string_view text, size_t max_bytes) {
  return WithoutInvisible(ToValidUtf8(text, max_bytes), ' ');
}

bool IsLoopbackHost(std::string_view host) {
  if (host == "localhost") return true;
  std::string text(host);
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    in6_addr v6;
    text = text.substr(1, text.size() - 2);
    return inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
  }
  in_addr v4;
  return inet_pton(AF_INET, text.c_str(), &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}

Result<void> CheckMailServer(const std::string& field, const std::string& password_file,
                             MailServer& server) {
  if (!server.url.starts_with("smtp://") && !server.url.starts_with("smtps://")) {
    return Internal(field + ".smtp_url must start with smtp:// or smtps://");
  }
  if (!IsEmail(server.from)) {
    return Internal(field + ".mail_from must be a plain e-mail address");
  }
  if (server.user.empty() != password_file.empty()) {
    return Internal(field + ": smtp_user and smtp_password_file belong together");
  }
  if (server.user.empty()) return {};
  TRY(auto password, ReadPassword(field, password_file));
  server.password = std::move(password);
  return {};
}

std::string MailText(const Mail& mail) {
  return "From: Tollgate <" + mail.from + ">\r\nTo: <" + mail.to + ">\r\nSubject: " + mail.subject +
         "\r\nDate: " + MailDate(mail.at_us) + "\r\nMessage-ID: <" + mail.id +
         mail.from.substr(mail.from.find('@')) +
         ">\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
         "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n" +
         mail.body;
}

Sent SendMail(const MailServer& server, const std::string& to, const std::string& text,
              int timeout_ms, const std::atomic<bool>* abort) {
  if (!IsEmail(to) || !IsEmail(server.from)) return {false, "failed: not an e-mail address"};
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  const Handle curl(curl_easy_init());
  const List receivers(curl_slist_append(nullptr, ("<" + to + ">").c_str()));
  if (!curl || !receivers) return {false, "failed: libcurl has no handle"};
  Upload upload{text};
  const std::string from = "<" + server.from + ">";
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(timeout_ms));
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(timeout_ms));
  curl_easy_setopt(curl.get(), CURLOPT_URL, server.url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  // Without it libcurl falls back to plain text if the server, or an attacker on the path, hides
  // STARTTLS.
  const bool plain = OnLoopback(server.url) && server.authority_file.empty();
  curl_easy_setopt(curl.get(), CURLOPT_USE_SSL,
                   plain ? static_cast<long>(CURLUSESSL_NONE) : static_cast<long>(CURLUSESSL_ALL));
  if (!server.authority_file.empty()) {
    curl_easy_setopt(curl.get(), CURLOPT_CAINFO, server.authority_file.c_str());
  }
  if (!server.user.empty()) {
    curl_easy_setopt(curl.get(), CURLOPT_USERNAME, server.user.c_str());
    curl_easy_setopt(curl.get(), CURLOPT_PASSWORD, server.password.c_str());
  }
  if (abort != nullptr) {
    curl_easy_setopt(curl.get(), CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, &Progress);
    curl_easy_setopt(curl.get(), CURLOPT_XFERINFODATA, abort);
  }
  curl_easy_setopt(curl.get(), CURLOPT_MAIL_FROM, from.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_MAIL_RCPT, receivers.get());
  curl_easy_setopt(curl.get(), CURLOPT_UPLOAD, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_READFUNCTION, &Take);
  curl_easy_setopt(curl.get(), CURLOPT_READDATA, &upload);
  const CURLcode code = curl_easy_perform(curl.get());
  // The text comes from libcurl and is fixed. It contains nothing from the server.
  if (code != CURLE_OK) return {false, std::string("failed: ") + curl_easy_strerror(code)};
  return {true, "accepted"};
}

}  // namespace tollgate::mail
