#include "services/billing/archive/verify_archive.h"

#include <charconv>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <vector>

#include "common/base/crypto.h"
#include "common/json/json.h"
#include "services/billing/domain/chain.h"
#include "services/billing/archive/archive_files.h"

namespace tollgate::billing {
namespace {

using sql::Row;
using sql::SqlResult;

struct Chain {
  int64_t sequence = 0;
  std::string head = std::string(32, '\0');
};

class ArchiveCheck {
 public:
  ArchiveCheck(std::string folder, VerifyReport& report)
      : folder_(std::move(folder)), report_(report) {}

  void Month(int32_t month, const std::string& manifest_digest) {
    const std::string path = ManifestPath(folder_, month);
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    if (!in) return Report("there is no " + path);
    if (Sha256(text.str()) != manifest_digest) {
      return Report(path + " is not the manifest that the database knows");
    }
    json::Limits limits;
    limits.max_values = 100'000'000;
    auto manifest = json::Document::Parse(text.str(), limits);
    if (!manifest.ok()) return Report(path + " is not JSON");
    for (const json::Value file : manifest->root().Find("files")) {
      const std::string name = file.Find("name").string();
      if (HexEncode(FileDigest(folder_ + "/" + name)) != file.Find("sha256").string()) {
        Report(folder_ + "/" + name + " is missing or was changed");
      } else if (name.starts_with("entries-")) {
        Entries(folder_ + "/" + name);
      }
    }
  }
  // Compares an archived chain with the point where the verification of the database starts.
  void Head(const std::string& workspace, int64_t sequence, const std::string& head) {
    const Chain& chain = chains_[workspace];
    if (chain.sequence != sequence || chain.head != head) {
      Report("workspace " + workspace + ": the archive ends with entry " +
             std::to_string(chain.sequence) + ", archive_workspace with another or entry " +
             std::to_string(sequence));
    }
  }

 private:
  void Report(const std::string& what) {
    if (report_.violations.size() < kMaxViolations) report_.violations.push_back(what);
  }

  // Reads the fields of the next record. Returns false at the end.
  static bool ReadRecord(gzFile file, std::vector<std::string>& fields) {
    fields.assign(1, "");
    bool quoted = false;
    for (int c = gzgetc(file); c >= 0; c = gzgetc(file)) {
      if (quoted) {
        if (c != '"') {
          fields.back() += static_cast<char>(c);
          continue;
        }
        const int next = gzgetc(file);
        if (next == '"') {
          fields.back() += '"';
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
        fields.emplace_back();
      } else {
        fields.back() += static_cast<char>(c);
      }
    }
    return false;
  }

  static int64_t Number(const std::string& text) {
    int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }

  void Entries(const std::string& path) {
    const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
    if (file == nullptr) return Report("cannot read " + path);
    std::vector<std::string> fields;
    ReadRecord(file.get(), fields);  // column names
    while (ReadRecord(file.get(), fields)) {
      if (fields.size() != 13) return Report(path + " has a malformed record");
      // Fields are in the order of kEntryColumns.
      Entry entry;
      entry.workspace = fields[1];
      entry.sequence = Number(fields[2]);
      entry.kind = static_cast<EntryKind>(Number(fields[3]));
      entry.request = HexDecode(fields[4]).value_or("");
      entry.debit = static_cast<Account>(Number(fields[5]));
      entry.credit = static_cast<Account>(Number(fields[6]));
      entry.amount_nano_usd = Number(fields[7]);
      entry.month = static_cast<int32_t>(Number(fields[8]));
      entry.at_us = Number(fields[9]);
      entry.memo = fields[10];
      entry.detail = HexDecode(fields[11]).value_or("");
      entry.hash = HexDecode(fields[12]).value_or("");
      ++report_.entries;
      Chain& chain = chains_[entry.workspace];
      if (entry.sequence != chain.sequence + 1 || entry.hash != EntryHash(chain.head, entry)) {
        Report("workspace " + entry.workspace + ": archived entry " + fields[2] +
               " does not continue the chain");
      }
      chain.sequence = entry.sequence;
      chain.head = entry.hash;
    }
  }

  const std::string folder_;
  VerifyReport& report_;
  std::map<std::string, Chain> chains_;
};

}  // namespace

SqlResult<void> VerifyArchive(sql::Connection& db, const std::string& folder,
                              VerifyReport& report) {
  std::vector<std::pair<int32_t, std::string>> months;
  auto read = db.Query(
      "SELECT month, manifest FROM archive ORDER BY month", {},
      [&](const Row& row) { months.emplace_back(static_cast<int32_t>(row.Int(0)), row.Text(1)); });
  if (!read.ok()) return read;
  ArchiveCheck check(folder, report);
  for (const auto& [month, digest] : months) check.Month(month, digest);
  return db.Query("SELECT workspace, sequence, head FROM archive_workspace", {},
                  [&](const Row& row) { check.Head(row.Text(0), row.Int(1), row.Text(2)); });
}

}  // namespace tollgate::billing
