#include "services/billing/archive/archive_files.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "common/base/crypto.h"
#include "common/base/id.h"
#include "common/json/writer.h"
#include "services/billing/storage/schema.h"

namespace tollgate::billing {
namespace {

constexpr std::string_view kBlobs[] = {"id", "request", "detail", "hash", "idempotency_key_digest"};
constexpr std::string_view kTexts[] = {"workspace",         "key_id",     "model",
                                       "client_request_id", "engine",     "memo",
                                       "cost_pico",         "candidates", "quota_keys"};

template <typename List>
bool Contains(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool Flush(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool done = ::fsync(file) == 0;
  ::close(file);
  return done;
}

}  // namespace

ColumnKind KindOfColumn(std::string_view name) {
  if (Contains(kBlobs, name)) return ColumnKind::kBlob;
  return Contains(kTexts, name) ? ColumnKind::kText : ColumnKind::kInt;
}

std::vector<std::string_view> ColumnNames(std::string_view columns) {
  std::vector<std::string_view> names;
  for (size_t begin = 0; begin < columns.size();) {
    const size_t comma = std::min(columns.find(", ", begin), columns.size());
    names.push_back(columns.substr(begin, comma - begin));
    begin = comma + 2;
  }
  return names;
}

void AppendQuotedCsv(std::string& line, std::string_view text) {
  line += '"';
  for (const char c : text) {
    if (c == '"') line += '"';
    line += c;
  }
  line += '"';
}

std::string ArchivePath(const std::string& folder, const char* what, int32_t month) {
  return folder + "/" + what + "-" + std::to_string(month) + ".csv.gz";
}

CsvFile::CsvFile(std::string path, std::string_view columns) : path_(std::move(path)) {
  file_.reset(gzopen(path_.c_str(), "wb6"));
  if (file_ == nullptr) {
    failed_ = "cannot write " + path_;
    return;
  }
  for (const std::string_view name : ColumnNames(columns)) {
    kinds_.push_back(KindOfColumn(name));
    line_ += std::string(line_.empty() ? "" : ",") + std::string(name);
  }
  line_ += '\n';
  if (gzwrite(file_.get(), line_.data(), static_cast<unsigned>(line_.size())) <= 0) {
    failed_ = "cannot write " + path_;
  }
}

void CsvFile::Add(const sql::Row& row) {
  if (!failed_.empty()) return;
  line_.clear();
  for (size_t i = 0; i < kinds_.size(); ++i) {
    const int column = static_cast<int>(i);
    if (i > 0) line_ += ',';
    if (row.IsNull(column)) continue;
    if (kinds_[i] == ColumnKind::kInt) {
      line_ += std::to_string(row.Int(column));
    } else if (kinds_[i] == ColumnKind::kBlob) {
      line_ += HexEncode(row.Bytes(column));
    } else {
      AppendQuotedCsv(line_, row.Bytes(column));
    }
  }
  line_ += '\n';
  ++rows_;
  if (gzwrite(file_.get(), line_.data(), static_cast<unsigned>(line_.size())) <= 0) {
    failed_ = "cannot write " + path_;
  }
}

void CsvFile::Close() {
  if (file_ == nullptr) return;
  if (gzclose(file_.release()) != Z_OK || !Flush(path_)) failed_ = "cannot write " + path_;
}

std::string FileDigest(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return "";
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  EVP_DigestInit_ex(context, EVP_sha256(), nullptr);
  std::string piece(1 << 20, '\0');
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0) {
    EVP_DigestUpdate(context, piece.data(), static_cast<size_t>(in.gcount()));
  }
  std::string digest(32, '\0');
  EVP_DigestFinal_ex(context, reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  EVP_MD_CTX_free(context);
  return digest;
}

std::string ManifestPath(const std::string& folder, int32_t month) {
  return folder + "/manifest-" + std::to_string(month) + ".json";
}

MonthFiles::MonthFiles(const std::string& folder, int32_t month)
    : folder_(folder),
      month_(month),
      suffix_("." + Id::New().ToHex()),
      entries_(ArchivePath(folder, "entries", month) + suffix_, kEntryColumns),
      holds_(ArchivePath(folder, "holds", month) + suffix_, kHoldColumns),
      usage_(ArchivePath(folder, "usage", month) + suffix_, kUsageColumns) {}

MonthFiles::~MonthFiles() {
  for (const std::string& name : Names()) std::remove((name + suffix_).c_str());
}

std::vector<std::string> MonthFiles::Names() const {
  return {ArchivePath(folder_, "entries", month_), ArchivePath(folder_, "holds", month_),
          ArchivePath(folder_, "usage", month_), ManifestPath(folder_, month_)};
}

std::string MonthFiles::Publish() {
  for (const std::string& name : Names()) {
    if (std::rename((name + suffix_).c_str(), name.c_str()) != 0) return "cannot write " + name;
  }
  return Flush(folder_) ? "" : "cannot write " + folder_;
}

std::string MonthFiles::Finish(int64_t cut_us, const std::vector<WorkspaceState>& cuts) {
  CsvFile* const files[] = {&entries_, &holds_, &usage_};
  for (CsvFile* file : files) {
    file->Close();
    if (!file->failed().empty()) return file->failed();
  }
  const auto name_of = [this](const std::string& path) {
    const size_t begin = path.rfind('/') + 1;
    return path.substr(begin, path.size() - suffix_.size() - begin);
  };
  const std::string list = json::WriteArray(files, [&](const CsvFile* file) {
    return json::Writer()
        .Text("name", name_of(file->path()))
        .Number("rows", file->rows())
        .Text("sha256", HexEncode(FileDigest(file->path())))
        .Done();
  });
  const std::string workspaces = json::WriteArray(cuts, [](const WorkspaceState& state) {
    const auto sum = [&](Account account) { return state.sums[static_cast<size_t>(account)]; };
    return json::Writer()
        .Text("workspace", state.workspace)
        .Number("sequence", state.sequence)
        .Text("head", HexEncode(state.head))
        .Number("paid_nano_usd", sum(Account::kPaid))
        .Number("granted_nano_usd", sum(Account::kGranted))
        .Number("held_nano_usd", sum(Account::kHeld))
        .Number("receivable_nano_usd", -sum(Account::kReceivable))
        .Text("state_sha256", HexEncode(Sha256(EncodeState(state))))
        .Done();
  });
  const std::string text = json::Writer()
                               .Number("format", 2)
                               .Number("month", month_)
                               .Number("cut_us", cut_us)
                               .Raw("files", list)
                               .Raw("workspaces", workspaces)
                               .Done() +
                           "\n";
  const std::string path = ManifestPath(folder_, month_) + suffix_;
  {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << text;
    if (!out.flush()) return "cannot write " + path;
  }
  if (!Flush(path)) return "cannot write " + path;
  manifest_digest_ = Sha256(text);
  return "";
}

}  // namespace tollgate::billing
