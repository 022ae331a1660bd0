// The records of the outbox as bytes, and how a damaged file is read: bytes without a valid record
// are reported, and the records after them are read.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tollgate::inference_router {

// The key of a record: the request's id (16 bytes) and the number of the attempt (one byte),
// because each of two attempts of a request may have a record. Records of earlier versions have
// only the id.
std::string OutboxKey(std::string_view request_id, int32_t attempt);
std::string_view RequestIdOf(std::string_view key);

enum class RecordKind : char { kSettle = 1, kAcknowledge = 2 };

void AppendOutboxRecord(std::string& out, RecordKind kind, const std::string& key,
                        std::string_view payload);

struct OutboxContent {
  std::map<std::string, std::string> pending;  // payloads by key
  struct Range {
    size_t offset = 0, size = 0;
  };
  // Bytes without a valid record: damaged, not merely torn.
  std::vector<Range> damaged;
  // Bytes at the end of the file: the beginning of a record whose write was interrupted.
  size_t torn_bytes = 0;
};

// content: the whole file; the records begin at `at`. old_format: the file has no header.
OutboxContent ReadOutbox(std::string_view content, size_t at, bool old_format);
// Whether this is a file of the version without headers.
bool IsOldOutbox(std::string_view content);

}  // namespace tollgate::inference_router
