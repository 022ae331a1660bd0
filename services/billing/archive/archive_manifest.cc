#include "services/billing/archive/archive_manifest.h"

#include <fstream>
#include <map>
#include <sstream>

#include "common/base/crypto.h"
#include "common/base/try.h"
#include "services/billing/archive/archive_files.h"

namespace tollgate::billing {

sql::SqlResult<std::vector<ArchivedFiles>> ReadArchivedMonths(sql::Connection& db) {
  std::vector<ArchivedFiles> months;
  TRY(db.Query(
      "SELECT month, cut_us, manifest, entries, holds, usage_records FROM archive ORDER BY month",
      {}, [&](const sql::Row& row) {
        months.push_back({static_cast<int32_t>(row.Int(0)), row.Int(1), row.Text(2), row.Int(3),
                          row.Int(4), row.Int(5)});
      }));
  return months;
}

std::optional<json::Document> ReadManifest(const std::string& folder, const ArchivedFiles& files,
                                           const ReportFn& report) {
  const std::string path = ManifestPath(folder, files.month);
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  if (!in) {
    report("there is no " + path);
    return std::nullopt;
  }
  if (Sha256(text.str()) != files.manifest) {
    report(path + " is not the manifest that the database knows");
    return std::nullopt;
  }
  json::Limits limits;
  limits.max_values = 100'000'000;
  auto manifest = json::Document::Parse(text.str(), limits);
  if (manifest.ok()) return std::move(*manifest);
  report(path + " is not JSON");
  return std::nullopt;
}

bool CheckFiles(const json::Value& manifest, const std::string& folder, const ArchivedFiles& files,
                const ReportFn& report) {
  bool sound = true;
  std::map<std::string, int64_t> rows;
  for (const json::Value file : manifest.Find("files")) {
    const std::string name = file.Find("name").string();
    rows[name.substr(0, name.find('-'))] = file.Find("rows").Integer().value_or(-1);
    if (HexEncode(FileDigest(folder + "/" + name)) == file.Find("sha256").string()) continue;
    report(folder + "/" + name + " is missing or was changed");
    sound = false;
  }
  if (rows["entries"] != files.entries || rows["holds"] != files.holds ||
      rows["usage"] != files.usage_records) {
    report("archive: the numbers of rows of month " + std::to_string(files.month) +
           " are not those of its manifest");
  }
  return sound;
}

}  // namespace tollgate::billing
