#include "services/inference_router/settlement/outbox_format.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "common/base/crypto.h"
#include "common/base/id.h"

namespace tollgate::inference_router {
namespace {

// A record: magic, length of the body, CRC-32 of the body, CRC-32 of these three, body. The body is
// kind, key, payload; the kind determines the length of the key. Native byte order (little-endian).
// The head has its own checksum, so that a damaged length is not mistaken for an incomplete write.
constexpr uint32_t kMagic = 0x31424f54;  // "TOB1"
constexpr size_t kHead = 16;
// The format without headers: length and CRC-32 of the body, body.
constexpr size_t kOldHead = 8;
constexpr size_t kMaxBody = 64 * 1024;
constexpr size_t kKeyBytes = Id::kBytes + 1;
// Added to the kind of a record whose key is not only the id.
constexpr char kHasAttempt = 2;

struct Record {
  RecordKind kind = RecordKind::kSettle;
  std::string key;
  std::string_view payload;
  size_t size = 0;  // bytes in the file
};

uint32_t WordAt(std::string_view bytes, size_t at) {
  uint32_t word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof(word));
  return word;
}

bool IsLength(uint32_t length) { return length >= 1 + Id::kBytes && length <= kMaxBody; }

// Whether the bytes begin with the valid head of a record that ends after them.
bool IsCutRecord(std::string_view bytes) {
  if (bytes.size() < kHead) return true;
  return WordAt(bytes, 0) == kMagic && WordAt(bytes, 12) == Crc32(bytes.substr(0, 12)) &&
         IsLength(WordAt(bytes, 4)) && bytes.size() - kHead < WordAt(bytes, 4);
}

std::optional<Record> ReadRecord(std::string_view bytes, bool old_format) {
  const size_t head = old_format ? kOldHead : kHead;
  if (bytes.size() < head) return std::nullopt;
  if (!old_format &&
      (WordAt(bytes, 0) != kMagic || WordAt(bytes, 12) != Crc32(bytes.substr(0, 12)))) {
    return std::nullopt;
  }
  const uint32_t length = WordAt(bytes, old_format ? 0 : 4);
  const uint32_t crc = WordAt(bytes, old_format ? 4 : 8);
  if (!IsLength(length) || bytes.size() - head < length) return std::nullopt;
  const std::string_view body = bytes.substr(head, length);
  const bool has_attempt = body[0] > kHasAttempt;
  const auto kind = static_cast<RecordKind>(has_attempt ? body[0] - kHasAttempt : body[0]);
  const size_t key = has_attempt ? kKeyBytes : Id::kBytes;
  if (Crc32(body) != crc || length < 1 + key) return std::nullopt;
  if (kind != RecordKind::kSettle && kind != RecordKind::kAcknowledge) return std::nullopt;
  return Record{kind, std::string(body.substr(1, key)), body.substr(1 + key), head + length};
}

// The position of the next valid record at or after `at`, or the end.
size_t NextRecord(std::string_view content, size_t at, bool old_format) {
  const std::string_view magic(reinterpret_cast<const char*>(&kMagic), sizeof(kMagic));
  for (; at < content.size(); ++at) {
    if (!old_format) {
      at = content.find(magic, at);
      if (at == std::string_view::npos) return content.size();
    }
    if (ReadRecord(content.substr(at), old_format)) return at;
  }
  return content.size();
}

bool IsZero(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
}

}  // namespace

std::string OutboxKey(std::string_view request_id, int32_t attempt) {
  return std::string(request_id) + static_cast<char>(std::clamp(attempt, 0, 127));
}

std::string_view RequestIdOf(std::string_view key) { return key.substr(0, Id::kBytes); }

void AppendOutboxRecord(std::string& out, RecordKind kind, const std::string& key,
                        std::string_view payload) {
  std::string body(1, static_cast<char>(kind));
  if (key.size() == kKeyBytes) body[0] = static_cast<char>(body[0] + kHasAttempt);
  body += key;
  body += payload;
  const uint32_t head[] = {kMagic, static_cast<uint32_t>(body.size()), Crc32(body)};
  const std::string_view bytes(reinterpret_cast<const char*>(head), sizeof(head));
  const uint32_t crc = Crc32(bytes);
  out += bytes;
  out.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  out += body;
}

OutboxContent ReadOutbox(std::string_view content, size_t at, bool old_format) {
  OutboxContent out;
  while (at < content.size()) {
    if (const auto record = ReadRecord(content.substr(at), old_format)) {
      if (record->kind == RecordKind::kSettle) {
        out.pending[record->key] = std::string(record->payload);
      } else {
        out.pending.erase(record->key);
      }
      at += record->size;
      continue;
    }
    const size_t next = NextRecord(content, at + 1, old_format);
    const std::string_view rest = content.substr(at);
    // A crash during a write leaves the beginning of a record, or a file that has grown without its
    // data.
    const bool torn = next == content.size() && (old_format || IsCutRecord(rest) || IsZero(rest));
    if (torn) {
      out.torn_bytes = rest.size();
    } else {
      out.damaged.push_back({at, next - at});
    }
    at = next;
  }
  return out;
}

bool IsOldOutbox(std::string_view content) { return ReadRecord(content, true).has_value(); }

}  // namespace tollgate::inference_router
