#include "services/auth/storage/audit_copy.h"

#include <algorithm>
#include <optional>

#include "common/base/try.h"

namespace tollgate::auth {

using audit::Record;
using sql::Connection;
using sql::SqlResult;

namespace {

constexpr int kPage = 200;
constexpr int64_t kLateUs = 60'000'000;

std::string Entry(int64_t sequence, const std::string& source) {
  return "entry " + std::to_string(sequence) + " of " + source;
}

// The last entry of the source that was copied; before the first one, 0 and the genesis hash.
SqlResult<audit::Head> ReadPosition(Connection& connection, const std::string& source) {
  audit::Head position{0, audit::GenesisHash()};
  TRY(connection.Query(
      "SELECT source_sequence, source_hash FROM audit_event WHERE source = $1 AND source <> ''"
      " ORDER BY source_sequence DESC LIMIT 1",
      {source}, [&](const sql::Row& row) { position = {row.Int(0), row.Text(1)}; }));
  return position;
}

// Why the source's log does not continue the copied one, or "".
std::string CheckEnd(const AuditSource& source, const audit::Head& position,
                     const audit::Page& page) {
  if (page.head.sequence < position.sequence) {
    return "the log of " + source.name + " ends with entry " + std::to_string(page.head.sequence) +
           ", but entry " + std::to_string(position.sequence) + " was copied: entries were removed";
  }
  if (!page.records.empty()) return "";
  if (page.head.sequence != position.sequence) {
    return Entry(position.sequence + 1, source.name) + " is missing";
  }
  if (page.head.hash != position.hash) {
    return Entry(position.sequence, source.name) + " has another hash than its copy";
  }
  return "";
}

// Appends the records unless another replica has copied any of them meanwhile.
Result<int64_t> AppendCopies(sql::Database& database, const AuditSource& source,
                             const audit::Head& position, const std::vector<Record>& records) {
  int64_t copied = 0;
  const auto done =
      database.Transact(sql::TxMode::kWrite, [&](Connection& connection) -> SqlResult<void> {
        copied = 0;
        TRY(connection.Query("SELECT version FROM auth_head WHERE id = 1 FOR UPDATE", {},
                             [](const sql::Row&) {}));
        TRY(auto now, ReadPosition(connection, source.name));
        if (now.sequence != position.sequence || now.hash != position.hash) return {};
        std::vector<Record> copies = records;
        auto added = audit::Append(connection, kAuditTables, copies);
        if (added) copied = static_cast<int64_t>(copies.size());
        return added;
      });
  if (!done) return Fail{ToError(done.error())};
  return copied;
}

// Reads the copies of a source in the order of the log.
class CopyReader {
 public:
  CopyReader(Connection& connection, const std::string& source)
      : connection_(connection), source_(source) {}

  // Returns the next copy; nullopt at the end.
  SqlResult<std::optional<Record>> Next() {
    if (next_ == page_.size() && !ended_) {
      page_.clear();
      next_ = 0;
      TRY(connection_.Query(audit::SelectRecords(kAuditTables) +
                                " WHERE sequence > $1 AND source = $2 ORDER BY sequence LIMIT $3",
                            {after_, source_, kPage},
                            [&](const sql::Row& row) { page_.push_back(audit::ReadRecord(row)); }));
      ended_ = page_.size() < kPage;
      if (!page_.empty()) after_ = page_.back().sequence;
    }
    if (next_ == page_.size()) return std::optional<Record>();
    return std::optional(page_[next_++]);
  }

 private:
  Connection& connection_;
  const std::string source_;
  std::vector<Record> page_;
  size_t next_ = 0;
  int64_t after_ = 0;
  bool ended_ = false;
};

std::string CompareWithCopy(const Record& original, const Record& copy, const std::string& source) {
  const std::string event = "event " + std::to_string(copy.sequence) + " of the log";
  if (copy.source_sequence != original.sequence) {
    return event + " is the copy of " + Entry(copy.source_sequence, source) + " instead of " +
           std::to_string(original.sequence);
  }
  if (copy.source_hash != original.hash || !audit::SameContent(copy, original)) {
    return event + " differs from " + Entry(original.sequence, source);
  }
  return "";
}

}  // namespace

AuditSource DatabaseSource(std::string name, Connection& connection) {
  return {std::move(name), [&connection](int64_t after, int limit) -> Result<audit::Page> {
            auto page = audit::ReadPage(connection, audit::kEntries, after, limit);
            if (!page) return Fail{ToError(page.error())};
            return *std::move(page);
          }};
}

Result<CopyStep> CopyAudit(sql::Database& database, const AuditSource& source) {
  audit::Head position;
  const auto found =
      database.Transact(sql::TxMode::kRead, [&](Connection& connection) -> SqlResult<void> {
        TRY(auto read, ReadPosition(connection, source.name));
        position = std::move(read);
        return {};
      });
  if (!found) return Fail{ToError(found.error())};
  TRY(auto page, source.read(position.sequence, kPage));
  CopyStep step;
  step.problem = CheckEnd(source, position, page);
  if (!step.problem.empty()) return step;
  audit::Verifier chain(position.sequence, position.hash);
  std::vector<Record> copies;
  for (const Record& record : page.records) {
    if (!chain.Add(record)) {
      step.problem = "the log of " + source.name + ": " + chain.problem();
      break;
    }
    Record copy = record;
    copy.source = source.name;
    copy.source_sequence = record.sequence;
    copy.source_hash = record.hash;
    copies.push_back(std::move(copy));
  }
  if (!copies.empty()) {
    TRY(auto copied, AppendCopies(database, source, position, copies));
    step.copied = copied;
  }
  step.complete = step.problem.empty() && chain.sequence() >= page.head.sequence &&
                  step.copied == static_cast<int64_t>(copies.size());
  return step;
}

SqlResult<SourceFinding> VerifySource(Connection& connection, const AuditSource& source,
                                      int64_t now_us) {
  SourceFinding finding{.name = source.name, .hash = audit::GenesisHash()};
  const auto fail = [&](std::string problem) {
    finding.problem = std::move(problem);
    return finding;
  };
  // Read before the source, so entries that are copied from now on are left out.
  TRY(auto last, ReadPosition(connection, source.name));
  CopyReader copies(connection, source.name);
  audit::Verifier chain;
  while (true) {
    auto page = source.read(chain.sequence(), kPage);
    if (!page) {
      return fail("the entries of " + source.name +
                  " could not be read: " + page.error().ToString());
    }
    for (const Record& record : page->records) {
      if (!chain.Add(record)) return fail("the log of " + source.name + ": " + chain.problem());
      TRY(auto copy, copies.Next());
      if (copy) {
        std::string differs = CompareWithCopy(record, *copy, source.name);
        if (!differs.empty()) return fail(std::move(differs));
        finding.sequence = chain.sequence();
        finding.hash = chain.hash();
        continue;
      }
      if (record.sequence <= last.sequence || record.at_us < now_us - kLateUs) {
        return fail(Entry(record.sequence, source.name) + " is not in the log");
      }
      ++finding.waiting;
    }
    if (page->records.size() < kPage) {
      if (!chain.Finish(page->head.sequence, page->head.hash)) {
        return fail("the log of " + source.name + ": " + chain.problem());
      }
      break;
    }
  }
  TRY(auto extra, copies.Next());
  if (extra && extra->source_sequence <= last.sequence) {
    return fail("event " + std::to_string(extra->sequence) + " of the log is the copy of " +
                Entry(extra->source_sequence, source.name) + ", which does not exist");
  }
  return finding;
}

std::string FullFinding::problem() const {
  if (!log.problem.empty()) return log.problem;
  for (const SourceFinding& source : sources) {
    if (!source.problem.empty()) return source.problem;
  }
  if (sources.empty() || not_compared.empty()) return "";
  return "the log has entries of " + not_compared.front() + ", which is not one of the services";
}

SqlResult<FullFinding> VerifyAudit(Connection& connection, const AuditCheckpoints& checkpoints,
                                   const std::vector<AuditSource>& sources, int64_t now_us) {
  FullFinding finding;
  TRY(auto log, VerifyAuditLog(connection, checkpoints));
  finding.log = std::move(log);
  for (const AuditSource& source : sources) {
    TRY(auto compared, VerifySource(connection, source, now_us));
    finding.sources.push_back(std::move(compared));
  }
  for (const std::string& name : finding.log.sources) {
    const bool given = std::ranges::find(sources, name, &AuditSource::name) != sources.end();
    if (!given) finding.not_compared.push_back(name);
  }
  return finding;
}

}  // namespace tollgate::auth
