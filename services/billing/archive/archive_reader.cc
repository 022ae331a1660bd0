#include "services/billing/archive/archive_reader.h"

#include <algorithm>
#include <charconv>

#include "common/base/crypto.h"
#include "services/billing/archive/archive_files.h"

namespace tollgate::billing {

CsvReader::CsvReader(std::string path)
    : path_(std::move(path)), file_(gzopen(path_.c_str(), "rb"), gzclose) {
  if (file_ == nullptr || !ReadRecord()) {
    failed_ = "cannot read " + path_;
    return;
  }
  names_ = fields_;
  const auto workspace = std::find(names_.begin(), names_.end(), "workspace");
  workspace_column_ = static_cast<size_t>(workspace - names_.begin());
  Next();
}

void CsvReader::Next() {
  more_ = ReadRecord();
  if (!more_) return;
  if (fields_.size() == names_.size() && workspace_column_ < fields_.size()) return;
  more_ = false;
  failed_ = path_ + " has a malformed record";
}

// Returns false at the end.
bool CsvReader::ReadRecord() {
  gzFile file = file_.get();
  fields_.assign(1, "");
  bool quoted = false;
  for (int c = gzgetc(file); c >= 0; c = gzgetc(file)) {
    if (quoted) {
      if (c != '"') {
        fields_.back() += static_cast<char>(c);
        continue;
      }
      const int next = gzgetc(file);
      if (next == '"') {
        fields_.back() += '"';
        continue;
      }
      quoted = false;
      if (next < 0) return true;
      c = next;
    } else if (c == '"') {
      quoted = true;
      continue;
    }
    if (c == '\n') return true;
    if (c == ',') {
      fields_.emplace_back();
    } else {
      fields_.back() += static_cast<char>(c);
    }
  }
  return false;
}

std::vector<sql::Param> CsvReader::Values() {
  std::vector<sql::Param> values;
  bytes_.assign(fields_.size(), "");
  for (size_t i = 0; i < fields_.size(); ++i) {
    const std::string& field = fields_[i];
    switch (KindOfColumn(names_[i])) {
      case ColumnKind::kText:
        values.emplace_back(field);
        break;
      case ColumnKind::kBlob:
        bytes_[i] = HexDecode(field).value_or("");
        values.push_back(sql::Param::Blob(bytes_[i]));
        break;
      case ColumnKind::kInt: {
        // Only integers may be NULL.
        int64_t value = 0;
        std::from_chars(field.data(), field.data() + field.size(), value);
        values.emplace_back(field.empty() ? sql::Param(nullptr) : sql::Param(value));
        break;
      }
    }
  }
  return values;
}

}  // namespace tollgate::billing
