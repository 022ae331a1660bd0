#include "services/dashboard/transcode/headers.h"

#include <algorithm>
#include <limits>

#include "common/base/ascii.h"
#include "services/dashboard/transcode/number_text.h"
#include "services/dashboard/transcode/text.h"

namespace tollgate::transcode {
namespace {

constexpr std::string_view kMetadataPrefix = "grpc-metadata-";
constexpr std::string_view kGatewayPrefix = "grpcgateway-";

// Registered request headers, which reach the backend with kGatewayPrefix. Authorization and Cookie
// also count as such, but are not forwarded.
constexpr std::string_view kPermanent[] = {"accept",
                                           "accept-charset",
                                           "accept-language",
                                           "accept-ranges",
                                           "cache-control",
                                           "content-type",
                                           "date",
                                           "expect",
                                           "from",
                                           "if-match",
                                           "origin",
                                           "if-modified-since",
                                           "if-none-match",
                                           "if-schedule-tag-match",
                                           "pragma",
                                           "if-unmodified-since",
                                           "max-forwards",
                                           "referer",
                                           "user-agent",
                                           "via",
                                           "warning"};

// Keys that clients must not set: those of HTTP/2 and gRPC, those that the transcoder sets,
// credentials, and Tollgate's own.
constexpr std::string_view kReserved[] = {"authorization",    "connection",
                                          "content-length",   "content-type",
                                          "cookie",           "host",
                                          "keep-alive",       "te",
                                          "proxy-connection", "transfer-encoding",
                                          "trailer",          "upgrade",
                                          "user-agent",       "x-forwarded-for",
                                          "x-forwarded-host"};
constexpr std::string_view kReservedPrefixes[] = {kGatewayPrefix, "grpc-", "tollgate-",
                                                  "x-tollgate-"};

bool IsReserved(std::string_view key) {
  return std::find(std::begin(kReserved), std::end(kReserved), key) != std::end(kReserved) ||
         std::any_of(std::begin(kReservedPrefixes), std::end(kReservedPrefixes),
                     [&](std::string_view prefix) { return key.starts_with(prefix); });
}

bool IsKey(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return IsDigit(c) || IsLower(c) || c == '.' || c == '-' || c == '_';
  });
}

bool IsTextValue(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) { return c >= 0x20 && c <= 0x7E; });
}

// Converts "grpc-metadata-x-bin" to "Grpc-Metadata-X-Bin".
std::string Canonical(std::string_view name) {
  std::string out(name);
  bool start = true;
  for (char& c : out) {
    if (start && IsLower(c)) c = static_cast<char>(c & ~0x20);
    start = c == '-';
  }
  return out;
}

// Decodes base64 in the standard alphabet. Padding is optional.
std::optional<std::string> BinaryValue(std::string_view value) {
  if (value.find_first_of("-_") != std::string_view::npos) return std::nullopt;
  return ParseBytes(value);
}

}  // namespace

BasicResult<Metadata, std::string> ForwardedMetadata(const http::HttpRequest& request) {
  Metadata metadata;
  std::string forwarded_for;
  for (const auto& [name, value] : request.headers) {
    if (name == "x-forwarded-for") forwarded_for += value + ", ";
    if (std::find(std::begin(kPermanent), std::end(kPermanent), name) != std::end(kPermanent)) {
      if (IsTextValue(value)) metadata.emplace_back(std::string(kGatewayPrefix) + name, value);
      continue;
    }
    if (!name.starts_with(kMetadataPrefix)) continue;
    const std::string key = name.substr(kMetadataPrefix.size());
    if (!IsKey(key) || IsReserved(key)) continue;
    if (key.ends_with("-bin") || key == "bin") {
      auto bytes = BinaryValue(value);
      if (!bytes) return Fail{"invalid binary header " + Canonical(name) + ": it is not base64"};
      // gRPC treats only keys that end in "-bin" as binary, so the value of "bin" must be text.
      if (key == "bin" && !IsTextValue(*bytes)) continue;
      metadata.emplace_back(key, std::move(*bytes));
    } else if (IsTextValue(value)) {
      metadata.emplace_back(key, value);
    }
  }
  std::string_view host = request.header("x-forwarded-host");
  if (host.empty() || !IsTextValue(host)) host = request.header("host");
  if (!host.empty() && IsTextValue(host)) metadata.emplace_back("x-forwarded-host", host);
  forwarded_for += request.peer_address;
  if (!forwarded_for.empty() && IsTextValue(forwarded_for))
    metadata.emplace_back("x-forwarded-for", std::move(forwarded_for));
  return metadata;
}

BasicResult<int64_t, std::string> TimeoutNs(const http::HttpRequest& request) {
  const std::string_view text = request.header("grpc-timeout");
  if (text.empty()) return int64_t{0};
  constexpr std::string_view kUnits = "numSMH";
  constexpr int64_t kUnitNs[] = {
      1, 1'000, 1'000'000, 1'000'000'000, 60'000'000'000, 3'600'000'000'000};
  const size_t unit = kUnits.find(text.back());
  const auto count = ParseInteger<uint64_t>(text.substr(0, text.size() - 1));
  if (unit == std::string_view::npos || !count)
    return Fail{"invalid grpc-timeout: " + std::string(text)};
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  if (*count > static_cast<uint64_t>(kMost / kUnitNs[unit])) return kMost;
  return static_cast<int64_t>(*count) * kUnitNs[unit];
}

bool AcceptsTrailers(const http::HttpRequest& request) {
  std::string te(request.header("te"));
  for (char& c : te) c = IsUpper(c) ? static_cast<char>(c | 0x20) : c;
  return te.find("trailers") != std::string::npos;
}

http::Headers HeadersOf(const Metadata& metadata, std::string_view prefix) {
  http::Headers headers;
  for (const auto& [key, value] : metadata) {
    if (key.starts_with("grpc-") || key == "content-type") continue;
    headers.emplace_back(std::string(prefix) + key, value);
  }
  return headers;
}

}  // namespace tollgate::transcode
