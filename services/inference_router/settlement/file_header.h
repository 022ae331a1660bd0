// The common header of the settlement files, and the check of a file at the next start. The header
// identifies the file, and the boot and the start of the router that wrote it. See
// docs/design/ledger.md 6.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tollgate::inference_router {

// Identifies the file. The id is created with the file; the generation grows with every start of
// the router.
struct FileIdentity {
  std::string id;  // 16 bytes
  int64_t generation = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

struct FileHeader {
  static constexpr size_t kBytes = 64;

  FileIdentity identity;
  std::string boot_id;  // 16 bytes; identifies the boot in which the file was last opened

  std::string Encode(std::string_view magic) const;  // magic: 8 characters; returns kBytes
  static std::optional<FileHeader> Decode(std::string_view magic, std::string_view bytes);
};

// The state of a file compared with the state file.
enum class FileCheck : uint8_t {
  kFirst,        // no file, and none is expected
  kOldVersion,   // written by a version without headers
  kAsExpected,   //
  kMissing,      // the file is gone
  kEmpty,        // the file had content before
  kUnreadable,   // the header is damaged
  kTruncated,    // shorter than before
  kForeign,      // another file of the same kind
  kOlder,        // an earlier copy of the file
  kUnannounced,  // has a header, but the state file does not list it
};
bool IsLost(FileCheck check);
std::string_view NameOf(FileCheck check);

// What a router expects of a file, and what it writes to the header.
struct OpenAs {
  std::optional<FileIdentity> expected;  // from the state file; empty without one
  int64_t generation = 1;                // the current start's
  std::string boot_id;                   // 16 bytes; empty: the running kernel's
};

// header: of the existing file, if readable. size: of the existing file; -1: there is none.
FileCheck CheckFile(const OpenAs& open, const std::optional<FileHeader>& header, int64_t size);

// 16 bytes. All zero if the kernel does not provide it, so that every start counts as another boot.
std::string CurrentBootId();

// Reads the header of the file at this path, if there is one.
std::optional<FileHeader> ReadHeader(const std::string& path, std::string_view magic);
// Makes a rename or a new name in the folder of this path durable. Returns false on failure.
bool FlushFolderOf(const std::string& path);
// Writes all bytes at the file's position. Returns false with errno set on failure.
bool WriteFully(int file, std::string_view bytes);

inline constexpr std::string_view kJournalMagic = "TGJRNL03";
inline constexpr std::string_view kOutboxMagic = "TGOUTB02";

}  // namespace tollgate::inference_router
