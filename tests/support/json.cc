#include "tests/support/json.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tollgate::test {
namespace {

const Json kAbsent;
const std::string kNoText;
constexpr int kMaxDepth = 512;

void AppendUtf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

}  // namespace

class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool Whole(Json& into) {
    Space();
    if (!Value(into, 0)) return false;
    Space();
    return at_ == end_;
  }

 private:
  void Space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  bool Take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool Word(std::string_view word) {
    if (static_cast<size_t>(end_ - at_) < word.size() ||
        std::memcmp(at_, word.data(), word.size()) != 0)
      return false;
    at_ += word.size();
    return true;
  }

  bool Value(Json& into, int depth) {
    if (at_ == end_ || depth > kMaxDepth) return false;
    switch (*at_) {
      case '{':
        return Object(into, depth);
      case '[':
        return Array(into, depth);
      case '"':
        into.type_ = Json::Type::kString;
        return String(into.text_);
      case 't':
        into = Json(true);
        return Word("true");
      case 'f':
        into = Json(false);
        return Word("false");
      case 'n':
        into = Json();
        return Word("null");
      default:
        return Number(into);
    }
  }

  bool Object(Json& into, int depth) {
    into.type_ = Json::Type::kObject;
    ++at_;
    Space();
    if (Take('}')) return true;
    while (true) {
      Json::Member member;
      Space();
      if (at_ == end_ || *at_ != '"' || !String(member.first)) return false;
      Space();
      if (!Take(':')) return false;
      Space();
      if (!Value(member.second, depth + 1)) return false;
      into.members_.push_back(std::move(member));
      Space();
      if (Take('}')) return true;
      if (!Take(',')) return false;
    }
  }

  bool Array(Json& into, int depth) {
    into.type_ = Json::Type::kArray;
    ++at_;
    Space();
    if (Take(']')) return true;
    while (true) {
      Space();
      into.elements_.emplace_back();
      if (!Value(into.elements_.back(), depth + 1)) return false;
      Space();
      if (Take(']')) return true;
      if (!Take(',')) return false;
    }
  }

  bool Digits() {
    const char* start = at_;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ != start;
  }

  bool Number(Json& into) {
    const char* start = at_;
    Take('-');
    const bool zero = at_ != end_ && *at_ == '0';
    const char* whole = at_;
    if (!Digits() || (zero && at_ - whole > 1)) return false;
    if (Take('.') && !Digits()) return false;
    if (Take('e') || Take('E')) {
      if (!Take('+')) Take('-');
      if (!Digits()) return false;
    }
    into.type_ = Json::Type::kNumber;
    into.text_.assign(start, at_);
    return true;
  }

  bool Hex4(uint32_t& code) {
    if (end_ - at_ < 4) return false;
    code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = *at_;
      code <<= 4;
      if (c >= '0' && c <= '9')
        code |= static_cast<uint32_t>(c - '0');
      else if (c >= 'a' && c <= 'f')
        code |= static_cast<uint32_t>(c - 'a' + 10);
      else if (c >= 'A' && c <= 'F')
        code |= static_cast<uint32_t>(c - 'A' + 10);
      else
        return false;
    }
    return true;
  }

  bool Escape(std::string& out) {
    if (at_ == end_) return false;
    const char c = *at_++;
    switch (c) {
      case '"':
      case '\\':
      case '/':
        out += c;
        return true;
      case 'b':
        out += '\b';
        return true;
      case 'f':
        out += '\f';
        return true;
      case 'n':
        out += '\n';
        return true;
      case 'r':
        out += '\r';
        return true;
      case 't':
        out += '\t';
        return true;
      case 'u':
        break;
      default:
        return false;
    }
    uint32_t code = 0;
    if (!Hex4(code)) return false;
    if (code >= 0xD800 && code < 0xDC00 && end_ - at_ >= 6 && at_[0] == '\\' && at_[1] == 'u') {
      const char* after_high = at_;
      at_ += 2;
      uint32_t low = 0;
      if (!Hex4(low)) return false;
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      } else {
        at_ = after_high;  // a lone surrogate; the next escape is separate
        code = 0xFFFD;
      }
    } else if (code >= 0xD800 && code < 0xE000) {
      code = 0xFFFD;
    }
    AppendUtf8(out, code);
    return true;
  }

  bool String(std::string& out) {
    ++at_;
    out.clear();
    while (true) {
      const char* start = at_;
      while (at_ != end_ && *at_ != '"' && *at_ != '\\' && static_cast<unsigned char>(*at_) >= 0x20)
        ++at_;
      out.append(start, at_);
      if (at_ == end_) return false;
      const char c = *at_++;
      if (c == '"') return true;
      if (c != '\\' || !Escape(out)) return false;
    }
  }

  const char* at_;
  const char* end_;
};

Json::Json() = default;
Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;
Json::Json(bool value) : type_(Type::kBool), bool_(value) {}
Json::Json(int value) : Json(static_cast<int64_t>(value)) {}
Json::Json(int64_t value) : type_(Type::kNumber), text_(std::to_string(value)) {}
Json::Json(const char* value) : type_(Type::kString), text_(value) {}
Json::Json(std::string value) : type_(Type::kString), text_(std::move(value)) {}
Json::Json(std::string_view value) : type_(Type::kString), text_(value) {}
Json::Json(double value) : type_(Type::kNumber) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.17g", value);
  text_ = buffer;
}

Json Json::Array() {
  Json json;
  json.type_ = Type::kArray;
  return json;
}

Json Json::Object() {
  Json json;
  json.type_ = Type::kObject;
  return json;
}

std::optional<Json> Json::Parse(std::string_view text) {
  std::optional<Json> json{Json()};
  if (!JsonParser(text).Whole(*json)) return std::nullopt;
  return json;
}

const Json& Json::operator[](std::string_view key) const {
  for (const Member& member : members_) {
    if (member.first == key) return member.second;
  }
  return kAbsent;
}

const Json& Json::operator[](size_t index) const {
  return index < elements_.size() ? elements_[index] : kAbsent;
}

bool Json::has(std::string_view key) const {
  for (const Member& member : members_) {
    if (member.first == key) return true;
  }
  return false;
}

const std::string& Json::str() const { return is_string() ? text_ : kNoText; }

int64_t Json::integer(int64_t otherwise) const {
  if (!is_number()) return otherwise;
  if (text_.find_first_of(".eE") == std::string::npos)
    return std::strtoll(text_.c_str(), nullptr, 10);
  return std::llround(std::strtod(text_.c_str(), nullptr));
}

double Json::number(double otherwise) const {
  return is_number() ? std::strtod(text_.c_str(), nullptr) : otherwise;
}

Json& Json::Set(std::string key, Json value) {
  type_ = Type::kObject;
  for (Member& member : members_) {
    if (member.first == key) {
      member.second = std::move(value);
      return *this;
    }
  }
  members_.push_back({std::move(key), std::move(value)});
  return *this;
}

Json& Json::Add(Json value) {
  type_ = Type::kArray;
  elements_.push_back(std::move(value));
  return *this;
}

std::string Json::Dump() const {
  std::string out;
  DumpTo(out);
  return out;
}

void Json::DumpTo(std::string& out) const {
  switch (type_) {
    case Type::kNull:
      out += "null";
      return;
    case Type::kBool:
      out += bool_ ? "true" : "false";
      return;
    case Type::kNumber:
      out += text_;
      return;
    case Type::kString:
      out += '"';
      AppendJsonEscaped(out, text_);
      out += '"';
      return;
    case Type::kArray:
      out += '[';
      for (size_t i = 0; i < elements_.size(); ++i) {
        if (i != 0) out += ',';
        elements_[i].DumpTo(out);
      }
      out += ']';
      return;
    case Type::kObject:
      out += '{';
      for (size_t i = 0; i < members_.size(); ++i) {
        if (i != 0) out += ',';
        out += JsonQuoted(members_[i].first);
        out += ':';
        members_[i].second.DumpTo(out);
      }
      out += '}';
      return;
  }
}

void AppendJsonEscaped(std::string& out, std::string_view text) {
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text, start, i - start);
    start = i + 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
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
        char buffer[8];
        std::snprintf(buffer, sizeof buffer, "\\u%04x", c);
        out += buffer;
      }
    }
  }
  out.append(text, start);
}

std::string JsonQuoted(std::string_view text) {
  std::string out = "\"";
  AppendJsonEscaped(out, text);
  out += '"';
  return out;
}

}  // namespace tollgate::test
