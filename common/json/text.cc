// String literals: escaping and decoding.
#include <utility>

#include "common/base/utf8.h"
#include "common/json/json.h"
#include "common/json/scan.h"

namespace tollgate::json {

using internal::Byte;

namespace {

void AppendUtf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (code >> 6)));
    out.push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else if (code < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (code >> 12)));
    out.push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else {
    out.push_back(static_cast<char>(0xF0 | (code >> 18)));
    out.push_back(static_cast<char>(0x80 | ((code >> 12) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (code & 0x3F)));
  }
}

// Decodes the \uXXXX whose digits are at p, including the second half of a surrogate pair. Returns
// the byte after it.
const Byte* DecodeUnicode(std::string& out, const Byte* p, const Byte* end) {
  constexpr uint32_t kReplacement = 0xFFFD;
  const int32_t unit = end - p >= 4 ? internal::Hex4(p) : -1;
  if (unit < 0) {  // not possible in text that the parser has accepted
    AppendUtf8(out, kReplacement);
    return end;
  }
  p += 4;
  if (internal::IsHighSurrogate(unit) && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
    const int32_t low = internal::Hex4(p + 2);
    if (internal::IsLowSurrogate(low)) {
      AppendUtf8(out, 0x10000 + ((static_cast<uint32_t>(unit) - 0xD800) << 10) +
                          (static_cast<uint32_t>(low) - 0xDC00));
      return p + 6;
    }
  }
  const bool lone = internal::IsHighSurrogate(unit) || internal::IsLowSurrogate(unit);
  AppendUtf8(out, lone ? kReplacement : static_cast<uint32_t>(unit));
  return p;
}

// Decodes the escape whose backslash is at p. Returns the byte after it, or end if it is cut off.
const Byte* DecodeEscape(std::string& out, const Byte* p, const Byte* end) {
  if (p + 1 == end) return end;
  const Byte kind = p[1];
  p += 2;
  switch (kind) {
    case 'b':
      out.push_back('\b');
      return p;
    case 'f':
      out.push_back('\f');
      return p;
    case 'n':
      out.push_back('\n');
      return p;
    case 'r':
      out.push_back('\r');
      return p;
    case 't':
      out.push_back('\t');
      return p;
    case 'u':
      return DecodeUnicode(out, p, end);
    default:
      out.push_back(static_cast<char>(kind));
      return p;
  }
}

}  // namespace

void AppendEscaped(std::string& out, std::string_view text) {
  const Byte* p = reinterpret_cast<const Byte*>(text.data());
  const Byte* const end = p + text.size();
  while (p != end) {
    const Byte* stop = internal::FindSpecial<false>(p, end);
    out.append(reinterpret_cast<const char*>(p), static_cast<size_t>(stop - p));
    if (stop == end) return;
    p = stop + 1;
    switch (*stop) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default: {
        constexpr char kHex[] = "0123456789abcdef";
        out += "\\u00";
        out.push_back(kHex[*stop >> 4]);
        out.push_back(kHex[*stop & 15]);
      }
    }
  }
}

void AppendQuoted(std::string& out, std::string_view text) {
  out.push_back('"');
  AppendEscaped(out, text);
  out.push_back('"');
}

std::string Quoted(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  AppendQuoted(out, text);
  return out;
}

std::string Unescape(std::string_view inside) {
  internal::decoded_bytes += inside.size();
  std::string out;
  out.reserve(inside.size());
  const Byte* p = reinterpret_cast<const Byte*>(inside.data());
  const Byte* const end = p + inside.size();
  while (p != end) {
    const Byte* stop =
        static_cast<const Byte*>(__builtin_memchr(p, '\\', static_cast<size_t>(end - p)));
    if (stop == nullptr) stop = end;
    out.append(reinterpret_cast<const char*>(p), static_cast<size_t>(stop - p));
    p = stop == end ? end : DecodeEscape(out, stop, end);
  }
  return out;
}

bool EscapedEquals(std::string_view inside, std::string_view text) {
  // A decoded byte takes at most six bytes, and a byte decodes to at most one.
  if (text.size() > inside.size() || inside.size() > 6 * text.size()) return false;
  const Byte* const begin = reinterpret_cast<const Byte*>(inside.data());
  const Byte* const end = begin + inside.size();
  const Byte* p = begin;
  std::string character;  // small enough to need no allocation
  bool equal = true;
  while (equal && p != end) {
    if (*p != '\\') {
      equal = !text.empty() && text.front() == static_cast<char>(*p++);
      if (equal) text.remove_prefix(1);
      continue;
    }
    character.clear();
    p = DecodeEscape(character, p, end);
    equal = text.starts_with(character);
    if (equal) text.remove_prefix(character.size());
  }
  internal::decoded_bytes += static_cast<size_t>(p - begin);
  return equal && text.empty();
}

size_t PlainStringLength(std::string_view text) {
  const Byte* const begin = reinterpret_cast<const Byte*>(text.data());
  const Byte* const end = begin + text.size();
  for (const Byte* p = begin;;) {
    p = internal::FindSpecial<true>(p, end);
    if (p == end || *p < 0x20) return std::string_view::npos;
    if (*p == '"') return static_cast<size_t>(p - begin);
    if (*p >= 0x80) {
      const Byte* bad = nullptr;
      p = utf8::SkipMultiByte(p, end, &bad);
      if (p == nullptr) return std::string_view::npos;
      continue;
    }
    if (end - p < 2 ||
        std::string_view("\"\\/bfnrt").find(static_cast<char>(p[1])) == std::string_view::npos) {
      return std::string_view::npos;
    }
    p += 2;
  }
}

void EscapeLineBreaks(std::string& json) {
  constexpr std::pair<std::string_view, std::string_view> kBreaks[] = {
      {"\xC2\x85", "\\u0085"}, {"\xE2\x80\xA8", "\\u2028"}, {"\xE2\x80\xA9", "\\u2029"}};
  for (const auto& [character, escape] : kBreaks) {
    size_t found = json.find(character);
    if (found == std::string::npos) continue;
    std::string escaped;
    size_t begin = 0;
    for (; found != std::string::npos; found = json.find(character, begin)) {
      escaped.append(json, begin, found - begin).append(escape);
      begin = found + character.size();
    }
    json = std::move(escaped.append(json, begin));
  }
}

}  // namespace tollgate::json
