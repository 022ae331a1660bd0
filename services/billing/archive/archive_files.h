// Files of one archived month: entries, holds and usage records as CSV, compressed with gzip, and a
// manifest with their checksums.
#pragma once

#include <zlib.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "services/billing/verify/verify_rows.h"
#include "services/billing/verify/verify_state.h"

namespace tollgate::billing {

enum class ColumnKind : uint8_t { kInt, kText, kBlob };
ColumnKind KindOfColumn(std::string_view name);
// The names in "a, b".
std::vector<std::string_view> ColumnNames(std::string_view columns);
void AppendQuotedCsv(std::string& line, std::string_view text);

// One file. Integers are decimal digits, NULL is empty, bytes are hexadecimal. The first line has
// the column names.
class CsvFile {
 public:
  // columns: as in a SELECT. Does not throw; failed() returns the first error.
  CsvFile(std::string path, std::string_view columns);
  void Add(const sql::Row& row);
  // Flushes the file to the disk.
  void Close();

  const std::string& failed() const { return failed_; }
  int64_t rows() const { return rows_; }
  const std::string& path() const { return path_; }

 private:
  struct Closer {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  const std::string path_;
  std::vector<ColumnKind> kinds_;
  std::unique_ptr<gzFile_s, Closer> file_;
  std::string line_;
  std::string failed_;
  int64_t rows_ = 0;
};

class MonthFiles : public RowSink {
 public:
  // The files have temporary names until they are published.
  MonthFiles(const std::string& folder, int32_t month);
  // Removes files that were not published.
  ~MonthFiles() override;
  void OnEntry(const sql::Row& row) override { entries_.Add(row); }
  void OnHold(const sql::Row& row) override { holds_.Add(row); }
  void OnUsage(const sql::Row& row) override { usage_.Add(row); }

  // Writes the manifest and flushes all files. Returns an empty string, or what went wrong.
  std::string Finish(int64_t cut_us, const std::vector<WorkspaceState>& cuts);
  // Renames the files to their final names. Returns an empty string, or what went wrong.
  std::string Publish();
  const std::string& manifest_digest() const { return manifest_digest_; }
  int64_t entries() const { return entries_.rows(); }
  int64_t holds() const { return holds_.rows(); }
  int64_t usage_records() const { return usage_.rows(); }

 private:
  // All files that Publish renames.
  std::vector<std::string> Names() const;

  const std::string folder_;
  const int32_t month_;
  const std::string suffix_;  // until the files are published
  CsvFile entries_;
  CsvFile holds_;
  CsvFile usage_;
  std::string manifest_digest_;
};

// "what" is entries, holds or usage.
std::string ArchivePath(const std::string& folder, const char* what, int32_t month);
std::string ManifestPath(const std::string& folder, int32_t month);
// SHA-256 of a file; empty if it cannot be read.
std::string FileDigest(const std::string& path);

}  // namespace tollgate::billing
