#include "services/inference_router/settlement/file_header.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "common/base/crypto.h"
#include "common/base/id.h"

namespace tollgate::inference_router {
namespace {

// Layout: magic, id, generation, boot id, CRC-32 of these, zeros.
constexpr size_t kIdAt = 8, kGenerationAt = 24, kBootAt = 32, kCrcAt = 48;
constexpr size_t kBootBytes = 16;

std::string Fitted(std::string text, size_t size) {
  text.resize(size);
  return text;
}

}  // namespace

std::string FileHeader::Encode(std::string_view magic) const {
  std::string bytes(kBytes, '\0');
  std::memcpy(bytes.data(), magic.data(), std::min<size_t>(magic.size(), kIdAt));
  std::memcpy(bytes.data() + kIdAt, Fitted(identity.id, Id::kBytes).data(), Id::kBytes);
  std::memcpy(bytes.data() + kGenerationAt, &identity.generation, sizeof(identity.generation));
  std::memcpy(bytes.data() + kBootAt, Fitted(boot_id, kBootBytes).data(), kBootBytes);
  const uint32_t crc = Crc32(std::string_view(bytes).substr(0, kCrcAt));
  std::memcpy(bytes.data() + kCrcAt, &crc, sizeof(crc));
  return bytes;
}

std::optional<FileHeader> FileHeader::Decode(std::string_view magic, std::string_view bytes) {
  if (bytes.size() < kBytes || !bytes.starts_with(magic)) return std::nullopt;
  uint32_t crc = 0;
  std::memcpy(&crc, bytes.data() + kCrcAt, sizeof(crc));
  if (crc != Crc32(bytes.substr(0, kCrcAt))) return std::nullopt;
  FileHeader header;
  header.identity.id = std::string(bytes.substr(kIdAt, Id::kBytes));
  std::memcpy(&header.identity.generation, bytes.data() + kGenerationAt,
              sizeof(header.identity.generation));
  header.boot_id = std::string(bytes.substr(kBootAt, kBootBytes));
  return header;
}

bool IsLost(FileCheck check) {
  switch (check) {
    case FileCheck::kFirst:
    case FileCheck::kOldVersion:
    case FileCheck::kAsExpected:
    case FileCheck::kUnannounced:
      return false;
    default:
      return true;
  }
}

std::string_view NameOf(FileCheck check) {
  switch (check) {
    case FileCheck::kFirst:
      return "new";
    case FileCheck::kOldVersion:
      return "written by an earlier version";
    case FileCheck::kAsExpected:
      return "as expected";
    case FileCheck::kMissing:
      return "gone";
    case FileCheck::kEmpty:
      return "empty";
    case FileCheck::kUnreadable:
      return "header damaged";
    case FileCheck::kTruncated:
      return "shorter than it was";
    case FileCheck::kForeign:
      return "replaced by another file";
    case FileCheck::kOlder:
      return "replaced by an older copy";
    case FileCheck::kUnannounced:
      return "not in the state file";
  }
  return "";
}

FileCheck CheckFile(const OpenAs& open, const std::optional<FileHeader>& header, int64_t size) {
  if (!open.expected) {
    if (size <= 0) return FileCheck::kFirst;
    return header ? FileCheck::kUnannounced : FileCheck::kOldVersion;
  }
  if (size < 0) return FileCheck::kMissing;
  if (size == 0) return FileCheck::kEmpty;
  if (!header) return FileCheck::kUnreadable;
  if (header->identity.id != open.expected->id) return FileCheck::kForeign;
  // After a crash between writing the headers and the state file, the headers are ahead.
  return header->identity.generation < open.expected->generation ? FileCheck::kOlder
                                                                 : FileCheck::kAsExpected;
}

std::string CurrentBootId() {
  std::string text;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
  std::erase(text, '-');
  return HexDecode(text).value_or("") + std::string(text.empty() ? kBootBytes : 0, '\0');
}

std::optional<FileHeader> ReadHeader(const std::string& path, std::string_view magic) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(FileHeader::kBytes, '\0');
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) return std::nullopt;
  return FileHeader::Decode(magic, bytes);
}

bool FlushFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return false;
  const bool flushed = ::fsync(file) == 0;
  ::close(file);
  return flushed;
}

bool WriteFully(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace tollgate::inference_router
