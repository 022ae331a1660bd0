// Reads the rows of a CSV file of the archive, in the order in which they were written: by shard,
// then by workspace.
#pragma once

#include <zlib.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/sql/sql.h"

namespace tollgate::billing {

class CsvReader {
 public:
  explicit CsvReader(std::string path);

  // Whether there is another row; then its workspace.
  bool more() const { return more_; }
  const std::string& workspace() const { return fields_[workspace_column_]; }
  // The values of the row, as the database had them. They are valid until Next.
  std::vector<sql::Param> Values();
  void Next();

  // The same as texts of the file.
  const std::vector<std::string>& fields() const { return fields_; }
  // Names of the columns.
  const std::vector<std::string>& columns() const { return names_; }
  // Why reading has ended early; empty: it has not.
  const std::string& failed() const { return failed_; }

 private:
  bool ReadRecord();

  const std::string path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  size_t workspace_column_ = 0;
  std::vector<std::string> names_;
  std::vector<std::string> fields_;
  std::vector<std::string> bytes_;  // decoded fields
  bool more_ = false;
  std::string failed_;
};

}  // namespace tollgate::billing
