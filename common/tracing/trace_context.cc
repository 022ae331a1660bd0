#include "common/tracing/trace_context.h"

#include <random>

#include "common/base/ascii.h"
#include "common/base/mix.h"

namespace tollgate::tracing {
namespace {

constexpr size_t kTraceparentLength = 55;
constexpr size_t kTraceAt = 3, kSpanAt = 36, kFlagsAt = 53;
constexpr uint8_t kSampledFlag = 1;
constexpr uint8_t kNoVersion = 0xff;

// Accepts lower case only. Returns false if it is not hexadecimal.
bool ReadByte(const char* digits, uint8_t& byte) {
  if (IsUpper(digits[0]) || IsUpper(digits[1])) return false;
  const int high = HexValue(digits[0]);
  const int low = HexValue(digits[1]);
  byte = static_cast<uint8_t>(high << 4 | low);
  return high >= 0 && low >= 0;
}

// Returns the position after the two digits. Every request of a traced process formats five ids.
char* WriteByte(uint8_t byte, char* out) {
  static constexpr char kDigits[] = "0123456789abcdef";
  out[0] = kDigits[byte >> 4];
  out[1] = kDigits[byte & 15];
  return out + 2;
}

}  // namespace

std::string TraceContext::TraceIdHex() const {
  std::string hex(2 * trace_id.size(), '0');
  char* out = hex.data();
  for (const uint8_t byte : trace_id) out = WriteByte(byte, out);
  return hex;
}

std::optional<TraceContext> ParseTraceparent(std::string_view text) {
  if (text.size() < kTraceparentLength) return std::nullopt;
  if (text[kTraceAt - 1] != '-' || text[kSpanAt - 1] != '-' || text[kFlagsAt - 1] != '-') {
    return std::nullopt;
  }
  uint8_t version = 0;
  if (!ReadByte(text.data(), version) || version == kNoVersion) return std::nullopt;
  // A later version may have more fields after a dash.
  if (text.size() > kTraceparentLength && (version == 0 || text[kTraceparentLength] != '-')) {
    return std::nullopt;
  }
  TraceContext context;
  for (size_t i = 0; i < context.trace_id.size(); ++i) {
    if (!ReadByte(text.data() + kTraceAt + 2 * i, context.trace_id[i])) return std::nullopt;
  }
  for (size_t i = 0; i < sizeof(SpanId); ++i) {
    uint8_t byte = 0;
    if (!ReadByte(text.data() + kSpanAt + 2 * i, byte)) return std::nullopt;
    context.span_id = context.span_id << 8 | byte;
  }
  uint8_t flags = 0;
  if (!ReadByte(text.data() + kFlagsAt, flags)) return std::nullopt;
  context.sampled = (flags & kSampledFlag) != 0;
  if (context.trace_id == TraceId{} || context.span_id == 0) return std::nullopt;
  return context;
}

std::string FormatTraceparent(const TraceContext& context) {
  std::string text(kTraceparentLength, '-');
  WriteByte(0, text.data());
  char* out = text.data() + kTraceAt;
  for (const uint8_t byte : context.trace_id) out = WriteByte(byte, out);
  out = text.data() + kSpanAt;
  for (int shift = 56; shift >= 0; shift -= 8) {
    out = WriteByte(static_cast<uint8_t>(context.span_id >> shift), out);
  }
  WriteByte(context.sampled ? kSampledFlag : 0, text.data() + kFlagsAt);
  return text;
}

SpanId NewSpanId() {
  // One seed per thread; the sequence of splitmix64 does not repeat within 2^64.
  thread_local uint64_t state = [] {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }();
  SpanId id = 0;
  while (id == 0) id = MixBits(state += 0x9e3779b97f4a7c15U);
  return id;
}

SpanId ChildSpanId(SpanId parent, int number) {
  const SpanId id = MixBits(parent + 0x9e3779b97f4a7c15U * static_cast<uint64_t>(number + 1));
  return id == 0 ? 1 : id;
}

}  // namespace tollgate::tracing
