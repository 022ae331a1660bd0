#include "services/dashboard/http/web_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "common/base/crypto.h"
#include "common/observability/metrics.h"

namespace tollgate::dashboard {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMaxBytes = 64 << 20;
constexpr std::string_view kIndex = "/index.html";
constexpr std::string_view kAssets = "/assets/";
// Vite's list of chunks is for tests and not served.
constexpr std::string_view kManifest = "/manifest.json";
// Prefixes of interfaces, which never get a page.
constexpr std::string_view kNotPages[] = {"/admin", "/session", "/playground", "/csp-report"};
// Under these prefixes, names with a dot are also pages: ids of models have dots.
constexpr std::string_view kPages[] = {"/w/", "/operator/"};

// Allows scripts and styles from this origin only, nothing inline, and no markup from text (Trusted
// Types).
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; report-uri /csp-report";
constexpr std::string_view kPermissions =
    "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), microphone=(), "
    "payment=(), usb=()";

std::string_view TypeOf(const std::string& extension) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kTypes = {{
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".svg", "image/svg+xml"},
      {".png", "image/png"},
      {".woff2", "font/woff2"},
      {".json", "application/json"},
      {".txt", "text/plain; charset=utf-8"},
  }};
  const auto* found =
      std::ranges::find(kTypes, extension, &std::pair<std::string_view, std::string_view>::first);
  return found == kTypes.end() ? "application/octet-stream" : found->second;
}

std::string ETagOf(std::string_view bytes) {
  return "\"" + HexEncode(Sha256(bytes)).substr(0, 32) + "\"";
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Calls `function` with each element of a comma-separated list; stops when it returns true.
template <typename Function>
bool AnyOf(std::string_view list, Function function) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    if (function(Trimmed(list.substr(0, end)))) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

// Whether the browser accepts the coding by name, with a weight above zero.
bool Accepts(const http::HttpRequest& request, std::string_view coding) {
  return AnyOf(request.header("accept-encoding"), [&](std::string_view element) {
    const size_t semicolon = std::min(element.find(';'), element.size());
    if (Trimmed(element.substr(0, semicolon)) != coding) return false;
    const std::string_view weight =
        Trimmed(element.substr(std::min(semicolon + 1, element.size())));
    return !weight.starts_with("q=0") || weight.find_first_of("123456789") != std::string::npos;
  });
}

bool Matches(const http::HttpRequest& request, const std::string& etag) {
  return AnyOf(request.header("if-none-match"), [&](std::string_view element) {
    if (element.starts_with("W/")) element.remove_prefix(2);
    return element == etag || element == "*";
  });
}

bool IsPage(std::string_view path) {
  for (const std::string_view prefix : kNotPages) {
    if (path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/')) {
      return false;
    }
  }
  if (path.starts_with(kAssets)) return false;
  const bool below = std::ranges::any_of(
      kPages, [&](std::string_view prefix) { return path.starts_with(prefix); });
  return below || path.substr(path.rfind('/') + 1).find('.') == std::string_view::npos;
}

}  // namespace

Result<std::unique_ptr<const WebFiles>> WebFiles::Load(const std::string& folder) {
  std::unique_ptr<WebFiles> web(new WebFiles);
  std::error_code error;
  uintmax_t total = 0;
  for (auto at = fs::recursive_directory_iterator(folder, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (!at->is_regular_file(error)) continue;
    std::ifstream in(at->path(), std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    if (!in) return Internal("dashboard.web_folder: cannot read " + at->path().string());
    total += bytes.size();
    if (total > kMaxBytes) return Internal("dashboard.web_folder has more than 64 MiB: " + folder);
    fs::path name = "/" + fs::relative(at->path(), folder, error).generic_string();
    const std::string coding = name.extension().string();
    const bool coded = coding == ".br" || coding == ".gz";
    if (coded) name.replace_extension();
    if (name == kManifest) continue;
    File& file = web->files_[name.string()];
    file.type = TypeOf(name.extension().string());
    file.hashed = name.string().starts_with(kAssets);
    Body& body = coding == ".br" ? file.brotli : coding == ".gz" ? file.gzip : file.plain;
    body.etag = ETagOf(bytes);
    body.bytes = std::move(bytes);
  }
  if (error) return Internal("dashboard.web_folder: " + folder + ": " + error.message());
  const auto index = web->files_.find(kIndex);
  if (index == web->files_.end() || index->second.plain.bytes.empty()) {
    return Internal("dashboard.web_folder has no index.html: " + folder + "; build it: ./dev web");
  }
  return std::unique_ptr<const WebFiles>(std::move(web));
}

void WebFiles::AddHeaders(const File& file, http::Headers& headers) const {
  headers.emplace_back("content-type", file.type);
  headers.emplace_back("cache-control",
                       file.hashed ? "public, max-age=31536000, immutable" : "no-cache");
  headers.emplace_back("vary", "accept-encoding");
  headers.emplace_back("content-security-policy", kPolicy);
  headers.emplace_back("permissions-policy", kPermissions);
  headers.emplace_back("x-frame-options", "DENY");
  headers.emplace_back("referrer-policy", "no-referrer");
  headers.emplace_back("cross-origin-opener-policy", "same-origin");
}

http::HttpResponse WebFiles::Handle(const http::HttpRequest& request) const {
  auto found = files_.find(request.path);
  if (found == files_.end() && IsPage(request.path)) found = files_.find(kIndex);
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (!reads || found == files_.end() || found->second.plain.bytes.empty()) {
    http::HttpResponse response{.status = reads ? 404 : 405, .body = "There is no such file.\n"};
    if (!reads) response.headers.emplace_back("allow", "GET, HEAD");
    AddHeaders({.type = "text/plain; charset=utf-8"}, response.headers);
    return response;
  }
  const File& file = found->second;
  const Body* body = &file.plain;
  http::HttpResponse response;
  AddHeaders(file, response.headers);
  if (!file.brotli.bytes.empty() && Accepts(request, "br")) {
    body = &file.brotli;
    response.headers.emplace_back("content-encoding", "br");
  } else if (!file.gzip.bytes.empty() && Accepts(request, "gzip")) {
    body = &file.gzip;
    response.headers.emplace_back("content-encoding", "gzip");
  }
  response.headers.emplace_back("etag", body->etag);
  if (Matches(request, body->etag)) {
    response.status = 304;
  } else {
    response.body = body->bytes;
  }
  return response;
}

namespace {

prometheus::Counter& CspReports() {
  static prometheus::Counter& reports =
      metrics::Counter("tollgate_dashboard_csp_reports_total",
                       "Reports of browsers about violations of the pages' content policy.");
  return reports;
}

}  // namespace

void MakeCspReportCounter() { CspReports(); }

http::HttpResponse CountCspReport() {
  CspReports().Increment();
  http::HttpResponse response{.status = 204};
  response.headers.emplace_back("cache-control", "no-store");
  return response;
}

}  // namespace tollgate::dashboard
