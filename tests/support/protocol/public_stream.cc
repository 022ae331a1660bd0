#include "tests/support/protocol/public_stream.h"

#include <optional>

namespace tollgate::test {
namespace {

// White space outside strings.
bool IsCompact(std::string_view json) {
  bool inside = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (inside && c == '\\') {
      ++i;
    } else if (c == '"') {
      inside = !inside;
    } else if (!inside && (c == ' ' || c == '\t')) {
      return false;
    }
  }
  return true;
}

class Reader {
 public:
  explicit Reader(PublicStream& stream) : stream_(stream) {}

  void Line(std::string_view line) {
    if (line.empty()) return EndBlock();
    if (line[0] == ':') {
      Expect(!data_ && name_.empty() && !comment_, "a comment stands alone");
      comment_ = true;
    } else if (line.starts_with("event: ")) {
      Expect(!data_ && name_.empty() && !comment_, "the event line comes first and once");
      name_ = line.substr(7);
      Expect(!name_.empty(), "an event line names something");
    } else if (line.starts_with("data: ")) {
      Expect(!data_ && !comment_, "an event has one data line");
      data_ = std::string(line.substr(6));
    } else {
      Expect(false, "a line is a comment, an event line or a data line");
    }
  }

  bool in_block() const { return data_ || comment_ || !name_.empty(); }
  void Expect(bool holds, std::string_view rule) {
    if (holds) return;
    stream_.violations.push_back("frame " + std::to_string(stream_.events.size()) + ": " +
                                 std::string(rule));
  }

 private:
  void EndBlock() {
    Expect(in_block(), "one empty line ends an event");
    if (comment_) ++stream_.comments;
    if (data_) {
      PublicEvent event{name_, std::move(*data_), Json()};
      if (!event.is_done()) {
        const std::optional<Json> json = Json::Parse(event.data);
        Expect(json && json->is_object(), "data is a JSON object or [DONE]");
        Expect(IsCompact(event.data), "data is compact JSON");
        if (json) event.json = *json;
      }
      stream_.events.push_back(std::move(event));
    } else {
      Expect(name_.empty(), "an event has data");
    }
    data_.reset();
    name_.clear();
    comment_ = false;
  }

  PublicStream& stream_;
  std::string name_;
  std::optional<std::string> data_;
  bool comment_ = false;
};

}  // namespace

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const unsigned char lead = static_cast<unsigned char>(text[i]);
    size_t more = 0;
    uint32_t code = lead;
    if (lead >= 0xF0) {
      more = 3;
      code = lead & 0x07u;
      if (lead > 0xF4) return false;
    } else if (lead >= 0xE0) {
      more = 2;
      code = lead & 0x0Fu;
    } else if (lead >= 0xC0) {
      more = 1;
      code = lead & 0x1Fu;
    } else if (lead >= 0x80) {
      return false;
    }
    if (i + more >= text.size()) return false;
    for (size_t k = 1; k <= more; ++k) {
      const unsigned char next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80) return false;
      code = (code << 6) | (next & 0x3Fu);
    }
    static constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (code < kLeast[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
    i += more + 1;
  }
  return true;
}

PublicStream ReadPublicStream(std::string_view bytes) {
  PublicStream stream;
  Reader reader(stream);
  reader.Expect(bytes.find('\r') == std::string_view::npos, "lines end in LF");
  reader.Expect(IsUtf8(bytes), "the stream is UTF-8");
  size_t at = 0;
  for (size_t end; (end = bytes.find('\n', at)) != std::string_view::npos; at = end + 1) {
    reader.Line(bytes.substr(at, end - at));
  }
  reader.Expect(at == bytes.size() && !reader.in_block(), "the last event is whole");
  return stream;
}

}  // namespace tollgate::test
