#include "tests/fuzz/random_text.h"

#include <cstdint>
#include <cstdio>

namespace tollgate::fuzz {
namespace {

void AppendCode(std::u16string& to, uint32_t code) {
  if (code >= 0x10000) {
    to += static_cast<char16_t>(0xD800 + ((code - 0x10000) >> 10));
    to += static_cast<char16_t>(0xDC00 + ((code - 0x10000) & 0x3FF));
  } else {
    to += static_cast<char16_t>(code);
  }
}

void AppendUtf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
  }
  out += static_cast<char>(0x80 | (code & 0x3F));
}

uint32_t RandomCode(Random& random) {
  switch (random.Below(8)) {
    case 0:
      return static_cast<uint32_t>(random.Below(0x20));  // control characters, NUL too
    case 1:
      return static_cast<uint32_t>(
          static_cast<unsigned char>("\"\\/\b\f\n\r\t:,{}[]<>&'\x7f"[random.Below(20)]));
    case 2:
      return static_cast<uint32_t>(random.Between(0x80, 0x7FF));
    case 3: {
      static constexpr uint32_t kTelling[] = {0x2028, 0x2029, 0xFEFF, 0xFFFD, 0xFFFF,
                                              0xD7FF, 0xE000, 0x85,   0xA0,   0x200D};
      return kTelling[random.Below(std::size(kTelling))];
    }
    case 4:
      return random.Pick<uint32_t>({0x1F600, 0x10000, 0x10FFFF, 0x1F468, 0x2F800});
    default:
      return static_cast<uint32_t>(random.Between(' ', '~'));
  }
}

void Put(std::u16string& out, std::string_view ascii) { out.append(ascii.begin(), ascii.end()); }

void PutString(Random& random, std::u16string& out) {
  out += u'"';
  for (size_t left = random.Below(6); left > 0; --left) {
    const uint32_t code = RandomCode(random);
    if (code == '"' || code == '\\') {
      out += u'\\';
      AppendCode(out, code);
    } else if (code < 0x20 || random.Percent(10)) {
      if (code >= 0x10000) continue;
      char text[8];
      std::snprintf(text, sizeof text, "\\u%04x", code);
      Put(out, text);
    } else {
      AppendCode(out, code);
    }
  }
  out += u'"';
}

void PutValue(Random& random, std::u16string& out, int depth);

void PutObject(Random& random, std::u16string& out, int depth) {
  out += u'{';
  const size_t members = random.Below(3);
  for (size_t i = 0; i < members; ++i) {
    Put(out, i > 0 ? ", \"k" : "\"k");
    Put(out, std::to_string(i) + "\":");
    PutValue(random, out, depth + 1);
  }
  out += u'}';
}

void PutValue(Random& random, std::u16string& out, int depth) {
  switch (random.Below(depth > 3 ? 3 : 6)) {
    case 0:
      return Put(out, random.Pick<const char*>({"0", "-1", "12345678901234567890", "1e400", "0.10",
                                                "true", "false", "null"}));
    case 3:
      return PutObject(random, out, depth);
    case 4:
      out += u'[';
      PutValue(random, out, depth + 1);
      out += u']';
      return;
    default:
      return PutString(random, out);
  }
}

}  // namespace

std::u16string RandomText(Random& random, size_t max_units, bool lone_halves) {
  std::u16string text;
  const size_t size = random.Between(1, max_units);
  while (text.size() < size) {
    if (lone_halves && random.Percent(5)) {
      text += static_cast<char16_t>(random.Between(0xD800, 0xDFFF));
    } else {
      AppendCode(text, RandomCode(random));
    }
  }
  return text;
}

std::u16string RandomObject(Random& random) {
  std::u16string text;
  PutObject(random, text, 0);
  return text;
}

std::string ToUtf8(std::u16string_view units) {
  std::string out;
  for (size_t i = 0; i < units.size(); ++i) {
    uint32_t code = units[i];
    if (IsHigh(units[i]) && i + 1 < units.size() && IsLow(units[i + 1])) {
      code = 0x10000 + ((code - 0xD800) << 10) + (units[++i] - 0xDC00u);
    } else if (code >= 0xD800 && code < 0xE000) {
      code = 0xFFFD;
    }
    AppendUtf8(out, code);
  }
  return out;
}

std::u16string ToUtf16(std::string_view utf8) {
  std::u16string out;
  for (size_t i = 0; i < utf8.size();) {
    const unsigned char lead = static_cast<unsigned char>(utf8[i++]);
    const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
    uint32_t code = more == 3   ? lead & 0x07u
                    : more == 2 ? lead & 0x0Fu
                    : more == 1 ? lead & 0x1Fu
                                : lead;
    for (int k = 0; k < more && i < utf8.size(); ++k) {
      code = (code << 6) | (static_cast<unsigned char>(utf8[i++]) & 0x3Fu);
    }
    AppendCode(out, code);
  }
  return out;
}

std::string Escape(Random& random, std::u16string_view units, size_t escaped_percent) {
  std::string out;
  const auto hex = [&](char16_t unit) {
    char text[8];
    std::snprintf(text, sizeof text, random.Percent(50) ? "\\u%04x" : "\\u%04X", unit);
    out += text;
  };
  for (size_t i = 0; i < units.size(); ++i) {
    const char16_t unit = units[i];
    const bool pair = IsHigh(unit) && i + 1 < units.size() && IsLow(units[i + 1]);
    if (pair && !random.Percent(escaped_percent)) {
      out += ToUtf8(units.substr(i, 2));
      ++i;
    } else if (unit >= 0xD800 && unit < 0xE000) {
      hex(unit);
    } else if (unit == u'"' || unit == u'\\' || (unit == u'/' && random.Percent(30))) {
      out += '\\';
      out += static_cast<char>(unit);
    } else if (const size_t at = std::string_view("\b\f\n\r\t").find(static_cast<char>(unit));
               unit < 0x20 && at != std::string_view::npos && random.Percent(70)) {
      out += '\\';
      out += "bfnrt"[at];
    } else if (unit < 0x20 || random.Percent(escaped_percent)) {
      hex(unit);
    } else {
      out += ToUtf8(units.substr(i, 1));
    }
  }
  return out;
}

}  // namespace tollgate::fuzz
