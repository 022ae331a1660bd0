#include "gateway/surfaces/shared/media_url.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "common/base/ascii.h"

namespace tollgate::gateway {

namespace {

// Bytes of an https: URL.
constexpr size_t kMaxUrl = 8192;
// Bytes of a data: URL before its comma.
constexpr size_t kMaxDataHead = 512;
// A byte may be written as an escape of six characters.
constexpr size_t kMaxEscape = 6;
constexpr size_t kMaxHost = 253;

char Lower(char c) { return IsUpper(c) ? static_cast<char>(c | 0x20) : c; }

bool StartsWith(std::string_view text, std::string_view lower_prefix) {
  return text.size() >= lower_prefix.size() &&
         std::equal(lower_prefix.begin(), lower_prefix.end(), text.begin(),
                    [](char expected, char c) { return expected == Lower(c); });
}

bool All(std::string_view text, std::string_view more) {
  return std::all_of(text.begin(), text.end(), [more](char c) {
    return IsAlnum(c) || more.find(c) != std::string_view::npos;
  });
}

// The characters of RFC 3986, which exclude white space, control characters, backslash and bytes
// above 0x7E.
bool HasUrlCharactersOnly(std::string_view text) { return All(text, "-._~:/?#[]@!$&'()*+,;=%"); }

// "image/png;base64": a media type with parameters, possibly empty.
bool IsDataHead(std::string_view head) { return All(head, "!#$&^_.+-/;=%"); }

bool IsPort(std::string_view port) {
  if (port.empty() || port.size() > 5 || !std::all_of(port.begin(), port.end(), IsDigit)) {
    return false;
  }
  int number = 0;
  for (const char c : port) number = number * 10 + (c - '0');
  return number >= 1 && number <= 65535;
}

// Four decimal numbers without leading zeros. Other forms of an address (0x7f.1, 2130706433, 010.1)
// mean different hosts to different parsers.
bool IsPlainAddress(std::string_view host) {
  int parts = 0;
  while (true) {
    const size_t dot = host.find('.');
    const std::string_view part = host.substr(0, dot);
    if (part.empty() || part.size() > 3 || !std::all_of(part.begin(), part.end(), IsDigit) ||
        (part.size() > 1 && part[0] == '0')) {
      return false;
    }
    int number = 0;
    for (const char c : part) number = number * 10 + (c - '0');
    if (number > 255) return false;
    ++parts;
    if (dot == std::string_view::npos) return parts == 4;
    host.remove_prefix(dot + 1);
  }
}

bool IsName(std::string_view host) {
  std::string_view last;
  for (std::string_view rest = host;;) {
    const size_t dot = rest.find('.');
    const std::string_view label = rest.substr(0, dot);
    if (label.empty() || label.size() > 63 || !All(label, "-_")) return false;
    last = label;
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  // A name whose last label is a number is read as an address.
  const bool numeric = IsDigit(last[0]) && All(last, "") &&
                       (std::all_of(last.begin(), last.end(), IsDigit) || StartsWith(last, "0x"));
  return !numeric || IsPlainAddress(host);
}

bool IsHost(std::string_view host) {
  if (host.empty() || host.size() > kMaxHost) return false;
  if (host[0] != '[') return IsName(host);
  if (host.back() != ']') return false;
  const std::string_view address = host.substr(1, host.size() - 2);
  return address.find(':') != std::string_view::npos &&
         std::all_of(address.begin(), address.end(),
                     [](char c) { return HexValue(c) >= 0 || c == ':' || c == '.'; });
}

// Parses the text after "https://".
std::optional<MediaUrl> ParseAuthority(std::string_view rest) {
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  const size_t bracket = authority.rfind(']');
  const size_t from = bracket == std::string_view::npos ? 0 : bracket;
  const size_t colon = authority.find(':', from);
  std::string_view host = authority.substr(0, colon);
  if (colon != std::string_view::npos && !IsPort(authority.substr(colon + 1))) return std::nullopt;
  if (host.ends_with('.')) host.remove_suffix(1);
  if (!IsHost(host)) return std::nullopt;
  MediaUrl url{std::string(host)};
  std::transform(url.host.begin(), url.host.end(), url.host.begin(), Lower);
  return url;
}

bool OneOf(json::Value member, std::initializer_list<std::string_view> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return member.KeyEquals(name); });
}

bool IsTextMember(json::Value member) {
  return OneOf(member, {"type", "text", "refusal", "thinking", "detail", "format", "filename",
                        "name", "title", "context", "cache_control"});
}

// Whether the string begins with a scheme, such as "file:", or with a form that could hide one.
bool HasScheme(std::string_view escaped) {
  constexpr size_t kLongest = 64;
  std::string_view start = escaped.substr(0, kLongest);
  for (size_t at = start.find('\\'); at != std::string_view::npos; at = start.find('\\', at + 2)) {
    if (escaped.substr(at, 2) != "\\/") return true;
  }
  start.remove_prefix(std::min(start.find_first_not_of(' '), start.size()));
  const size_t colon = start.find(':');
  return colon != std::string_view::npos && All(start.substr(0, colon), "+.-");
}

class PartChecker {
 public:
  explicit PartChecker(std::set<std::string>& hosts) : hosts_(hosts) {}

  // is_url: the name of the member, or of an enclosing one, marks a URL.
  std::string Check(json::Value value, bool is_url) {
    if (value.is_string()) return CheckString(value.raw_string(), is_url);
    if (value.is_array()) {
      for (const json::Value item : value) {
        if (std::string problem = Check(item, is_url); !problem.empty()) return problem;
      }
    } else if (value.is_object()) {
      for (const json::Value member : value) {
        if (std::string problem = CheckMember(member, is_url); !problem.empty()) return problem;
      }
    }
    return "";
  }

 private:
  std::string CheckMember(json::Value member, bool is_url) {
    if (member.is_null() || IsTextMember(member)) return "";
    const std::string key = member.key();
    // A uuid could name another tenant's media in the engine's cache.
    if (key == "uuid") return " must not name media by 'uuid'.";
    if (key.ends_with("_embeds")) return " must not hold embeddings.";
    const bool names_url = key == "url" || key == "uri" || key == "image" || key == "video" ||
                           key == "audio" || key.ends_with("_url");
    return Check(member, names_url || (is_url && !member.is_string()));
  }

  std::string CheckString(std::string_view escaped, bool is_url) {
    if (!is_url && !HasScheme(escaped)) return "";
    auto url = ParseMediaUrl(escaped);
    if (!url) return std::string(kBadMediaUrl);
    if (!url->host.empty()) hosts_.insert(std::move(url->host));
    return "";
  }

  std::set<std::string>& hosts_;
};

}  // namespace

std::optional<MediaUrl> ParseMediaUrl(std::string_view url) {
  const size_t comma = url.find(',');
  if (comma != std::string_view::npos && comma <= kMaxDataHead * kMaxEscape) {
    const std::string head = json::Unescape(url.substr(0, comma));
    if (StartsWith(head, "data:")) {
      const bool good = head.size() <= kMaxDataHead && IsDataHead(std::string_view(head).substr(5));
      return good ? std::optional(MediaUrl()) : std::nullopt;
    }
  }
  constexpr std::string_view kHttps = "https://";
  if (url.size() > kMaxUrl * kMaxEscape) return std::nullopt;
  const std::string text = json::Unescape(url);
  if (text.size() > kMaxUrl || !StartsWith(text, kHttps) || !HasUrlCharactersOnly(text)) {
    return std::nullopt;
  }
  return ParseAuthority(std::string_view(text).substr(kHttps.size()));
}

std::string CheckMediaPart(json::Value part, std::set<std::string>& hosts) {
  if (part.Find("type").string().ends_with("_embeds")) return " must not hold embeddings.";
  return PartChecker(hosts).Check(part, false);
}

bool HasMediaMember(json::Value part) {
  for (const json::Value member : part) {
    if (member.is_null() || IsTextMember(member)) continue;
    if (OneOf(member, {"image_url", "video_url", "audio_url", "file_url", "url", "input_audio",
                       "input_image", "image", "video", "audio", "file", "uuid"}) ||
        member.key().ends_with("_embeds")) {
      return true;
    }
  }
  return false;
}

}  // namespace tollgate::gateway
