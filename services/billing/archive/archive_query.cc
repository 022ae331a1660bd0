#include "services/billing/archive/archive_query.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/try.h"
#include "common/base/utc_text.h"
#include "common/json/writer.h"
#include "services/billing/archive/archive_files.h"
#include "services/billing/archive/archive_manifest.h"
#include "services/billing/archive/archive_reader.h"
#include "services/billing/domain/types.h"
#include "services/billing/storage/schema.h"

namespace tollgate::billing {
namespace {

using sql::SqlResult;

// The name that a number stands for; empty if the column has plain numbers.
std::string_view NameOf(std::string_view column, int64_t value) {
  if (column == "kind") return EntryKindName(static_cast<EntryKind>(value));
  if (column == "debit" || column == "credit") return AccountName(static_cast<Account>(value));
  if (column == "state") return HoldStateName(static_cast<HoldState>(value));
  if (column == "outcome") return OutcomeName(static_cast<Outcome>(value));
  if (column == "surface") return SurfaceName(static_cast<Surface>(value));
  return {};
}

int64_t ToInt(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

class MonthQuery {
 public:
  MonthQuery(const ArchiveQuery& query, int32_t month)
      : query_(query),
        file_(ArchivePath(query.folder, query.entries ? "entries" : "usage", month)),
        id_(IndexOf(query.entries ? "request" : "id")),
        key_(IndexOf("key_id")),
        kind_(IndexOf("kind")) {
    for (const std::string_view name : Columns(query)) columns_.push_back(IndexOf(name));
  }

  SqlResult<int64_t> Run(const std::function<void(std::string_view)>& write) {
    int64_t rows = 0;
    // The rows of a workspace follow each other.
    bool mine = false;
    for (; file_.more(); file_.Next()) {
      if (file_.workspace() != query_.workspace) {
        if (mine) break;
        continue;
      }
      mine = true;
      if (!Matches()) continue;
      write(query_.json ? JsonLine() : CsvLine());
      ++rows;
    }
    if (!file_.failed().empty()) return sql::Refused(file_.failed());
    return rows;
  }

  static std::vector<std::string_view> Columns(const ArchiveQuery& query) {
    auto names = ColumnNames(query.entries ? kEntryColumns : kUsageColumns);
    std::erase(names, "shard");
    return names;
  }

 private:
  // Empty if a file of an earlier version does not have the column.
  std::optional<size_t> IndexOf(std::string_view name) const {
    const auto at = std::find(file_.columns().begin(), file_.columns().end(), name);
    if (at == file_.columns().end()) return std::nullopt;
    return static_cast<size_t>(at - file_.columns().begin());
  }
  const std::string& Field(std::optional<size_t> column) const {
    static const std::string kNone;
    return column ? file_.fields()[*column] : kNone;
  }

  bool Matches() const {
    // Bytes are hexadecimal in the file. An entry names its request or, as text, a command.
    const std::string& id = Field(id_);
    return (query_.id.empty() || id == query_.id || id == HexEncode(query_.id)) &&
           (query_.key_id.empty() || Field(key_) == query_.key_id);
  }

  // Names instead of numbers, and texts as they are.
  std::string Shown(std::string_view column, const std::string& field) const {
    if (KindOfColumn(column) == ColumnKind::kInt && !field.empty()) {
      const std::string_view name = NameOf(column, ToInt(field));
      return name.empty() ? field : std::string(name);
    }
    const bool text = query_.entries && column == "request" &&
                      !IsRequestEntry(static_cast<EntryKind>(ToInt(Field(kind_))));
    return text ? HexDecode(field).value_or("") : field;
  }

  std::string CsvLine() const {
    std::string line;
    ForEachField([&](std::string_view column, const std::string& field) {
      if (!line.empty()) line += ',';
      if (KindOfColumn(column) == ColumnKind::kInt) {
        line += Shown(column, field);
      } else {
        AppendQuotedCsv(line, Shown(column, field));
      }
    });
    return line;
  }

  std::string JsonLine() const {
    json::Writer line;
    ForEachField([&](std::string_view column, const std::string& field) {
      const std::string shown = Shown(column, field);
      if (KindOfColumn(column) != ColumnKind::kInt || shown != field) {
        line.Text(column, shown);
      } else if (field.empty()) {
        line.Null(column);
      } else {
        line.Number(column, ToInt(field));
      }
    });
    return line.Done();
  }

  void ForEachField(const std::function<void(std::string_view, const std::string&)>& each) const {
    const auto names = Columns(query_);
    for (size_t i = 0; i < names.size(); ++i) each(names[i], Field(columns_[i]));
  }

  const ArchiveQuery& query_;
  CsvReader file_;
  const std::optional<size_t> id_, key_, kind_;
  std::vector<std::optional<size_t>> columns_;  // in the file
};

SqlResult<void> Verify(const ArchiveQuery& query, const ArchivedFiles& files) {
  std::string failed;
  const ReportFn report = [&](const std::string& what) {
    if (failed.empty()) failed = what;
  };
  const auto manifest = ReadManifest(query.folder, files, report);
  if (manifest) CheckFiles(manifest->root(), query.folder, files, report);
  return failed.empty() ? SqlResult<void>() : sql::Refused(failed);
}

}  // namespace

SqlResult<int64_t> QueryArchive(sql::Connection& db, const ArchiveQuery& query,
                                const std::function<void(std::string_view)>& write) {
  if (query.entries && !query.key_id.empty()) {
    return sql::Refused("entries name no key; ask for the requests of the key");
  }
  TRY(auto months, ReadArchivedMonths(db));
  if (query.month != 0) {
    std::erase_if(months, [&](const ArchivedFiles& one) { return one.month != query.month; });
  }
  if (months.empty()) {
    return sql::Refused(query.month == 0 ? "no month is archived"
                                         : UtcMonthText(query.month) + " is not archived");
  }
  for (const ArchivedFiles& files : months) TRY(Verify(query, files));
  if (!query.json) {
    std::string head;
    for (const std::string_view name : MonthQuery::Columns(query)) {
      head += (head.empty() ? "" : ",") + std::string(name);
    }
    write(head);
  }
  int64_t rows = 0;
  for (const ArchivedFiles& files : months) {
    TRY(auto found, MonthQuery(query, files.month).Run(write));
    rows += found;
  }
  return rows;
}

}  // namespace tollgate::billing
