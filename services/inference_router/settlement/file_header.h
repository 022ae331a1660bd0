// What the settlement files have in common: the header that names a file, the boot and the start
// of the router that wrote it, and what that says about the file found at the next start. See
// docs/design/ledger.md 6.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tollgate::inference_router {

// Which file this is. The id is made with the file; the generation grows with every start of the
// router.
struct FileIdentity {
  std::string id;  // 16 bytes
  int64_t generation = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

struct FileHeader {
  static constexpr size_t kBytes = 64;

  FileIdentity identity;
  std::string boot_id;  // 16 bytes; of the kernel under which the file was last opened

  std::string Encode(std::string_view magic) const;  // magic: 8 characters; kBytes in all
  static std::optional<FileHeader> Decode(std::string_view magic, std::string_view bytes);
};

// How a file was found, against what the state file expects.
enum class FileCheck : uint8_t {
  kFirst,        // no file, and none is expected
  kOldVersion,   // written by a version without headers
  kAsExpected,   //
  kMissing,      // there was one
  kEmpty,        // there was content
  kUnreadable,   // its header is damaged
  kTruncated,    // shorter than it was
  kForeign,      // another file of that kind
  kOlder,        // an earlier copy of the file
  kUnannounced,  // a file with a header, but no state file that knows it
};
bool IsLost(FileCheck check);
std::string_view NameOf(FileCheck check);

// What a router expects of a file, and what it writes into its header.
struct OpenAs {
  std::optional<FileIdentity> expected;  // by the state file; empty without one
  int64_t generation = 1;                // of this start
  std::string boot_id;                   // 16 bytes; empty: the running kernel's
};

// header: of the file found, if it can be read. size: of the file, -1: there is none.
FileCheck CheckFile(const OpenAs& open, const std::optional<FileHeader>& header, int64_t size);

// 16 bytes; all zero if the kernel does not tell, so that every start counts as another boot.
std::string CurrentBootId();

// The header of the file at this path, if there is one.
std::optional<FileHeader> ReadHeader(const std::string& path, std::string_view magic);
// Makes a rename or a new name in the folder of this path durable. False: it could not.
bool FlushFolderOf(const std::string& path);
// Writes all bytes at the file's position. False with errno.
bool WriteFully(int file, std::string_view bytes);

inline constexpr std::string_view kJournalMagic = "TGJRNL03";
inline constexpr std::string_view kOutboxMagic = "TGOUTB02";

}  // namespace tollgate::inference_router
