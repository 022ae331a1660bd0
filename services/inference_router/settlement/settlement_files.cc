#include "services/inference_router/settlement/settlement_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "common/base/crypto.h"
#include "common/base/id.h"
#include "common/base/try.h"
#include "common/observability/log.h"
#include "services/inference_router/settlement/settlement_metrics.h"

namespace tollgate::inference_router {
namespace {

constexpr std::string_view kTitle = "tollgate settlement files 1";

std::string CrcLine(const std::string& text) { return "crc " + std::to_string(Crc32(text)) + "\n"; }

// Empty if there is no file, or if it cannot be read.
std::optional<SettlementState> ReadState(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  return SettlementState::Decode(text);
}

void ReportLost(std::string_view file, FileCheck check, bool nothing_open, std::string_view then) {
  SettlementMetrics::Get().CountLostFile(file);
  log::Error("a settlement file of this router was lost",
             {{"file", file},
              {"found", NameOf(check)},
              {"stopped_with_nothing_open", nothing_open ? "yes" : "no"},
              {"then", then}});
}

}  // namespace

std::string SettlementState::Encode() const {
  std::ostringstream out;
  out << kTitle << "\ngeneration " << generation << "\noutbox " << HexEncode(outbox_id)
      << "\njournal " << HexEncode(journal_id) << "\nboot " << HexEncode(boot_id) << "\nclean "
      << (clean ? 1 : 0) << "\n";
  return out.str() + CrcLine(out.str());
}

std::optional<SettlementState> SettlementState::Decode(const std::string& text) {
  const size_t crc_at = text.rfind("crc ");
  if (!text.starts_with(kTitle) || crc_at == std::string::npos ||
      text.substr(crc_at) != CrcLine(text.substr(0, crc_at))) {
    return std::nullopt;
  }
  std::istringstream lines(text.substr(kTitle.size(), crc_at - kTitle.size()));
  SettlementState state;
  std::string name, value;
  while (lines >> name >> value) {
    if (name == "generation") state.generation = std::strtoll(value.c_str(), nullptr, 10);
    if (name == "outbox") state.outbox_id = HexDecode(value).value_or("");
    if (name == "journal") state.journal_id = HexDecode(value).value_or("");
    if (name == "boot") state.boot_id = HexDecode(value).value_or("");
    if (name == "clean") state.clean = value == "1";
  }
  if (state.outbox_id.size() != Id::kBytes || state.journal_id.size() != Id::kBytes) {
    return std::nullopt;
  }
  return state;
}

Result<std::unique_ptr<SettlementFiles>> SettlementFiles::Open(const std::string& folder,
                                                               std::string boot_id) {
  SettlementMetrics& metrics = SettlementMetrics::Get();
  if (boot_id.empty()) boot_id = CurrentBootId();
  std::unique_ptr<SettlementFiles> files(new SettlementFiles(folder));
  const std::string journal_path = folder + "/inflight", outbox_path = folder + "/outbox";
  const bool state_exists = std::filesystem::exists(files->state_path_);
  const auto before = ReadState(files->state_path_);
  const auto outbox_header = ReadHeader(outbox_path, kOutboxMagic);
  const auto journal_header = ReadHeader(journal_path, kJournalMagic);

  OpenAs open;
  open.boot_id = boot_id;
  open.generation = before ? before->generation : 0;
  for (const auto& header : {outbox_header, journal_header}) {
    if (header) open.generation = std::max(open.generation, header->identity.generation);
  }
  ++open.generation;
  if (before) open.expected = FileIdentity{before->journal_id, before->generation};
  TRY(auto journal, Journal::Open(journal_path, open));
  files->journal_ = std::move(journal);
  if (before) open.expected = FileIdentity{before->outbox_id, before->generation};
  TRY(auto outbox, Outbox::Open(outbox_path, open));
  files->outbox_ = std::move(outbox);
  // The state file does not list this file. Its requests are also in the journal, which reveals its
  // loss: the ledger refuses settlements of requests that it does not know.
  TRY(auto admissions,
      Outbox::Open(folder + "/admissions", {.generation = open.generation, .boot_id = boot_id}));
  files->admissions_ = std::move(admissions);

  const bool clean = before && before->clean;
  const JournalFound& found = files->journal_->found();
  if (!before && (state_exists || outbox_header || journal_header)) {
    ReportLost("state", state_exists ? FileCheck::kUnreadable : FileCheck::kMissing, false,
               "it is unknown whether outbox and journal belong to the last shutdown");
  }
  if (IsLost(files->outbox_->check())) {
    ReportLost("outbox", files->outbox_->check(), clean,
               "unacknowledged settlements are charged at their last heartbeat; those that the "
               "file still has are delivered");
  }
  if (IsLost(found.check)) {
    ReportLost("journal", found.check, clean,
               "requests that were running are charged at their last heartbeat");
  }
  metrics.CountJournal("recovered", found.recovered);
  metrics.CountJournal("older_copy", found.older_copy);
  metrics.CountJournal("other_boot", found.other_boot);
  metrics.CountJournal("damaged", found.damaged);
  if (found.other_boot + found.damaged > 0) {
    log::Error(
        "requests that were running are not settled from the journal: the ledger charges their "
        "last heartbeat",
        {{"other_boot", found.other_boot}, {"damaged", found.damaged}});
  }

  files->state_ = {open.generation, files->outbox_->identity().id, found.identity.id, boot_id,
                   false};
  // On a full disk the old state stays valid, because the headers may be ahead of it.
  if (!files->WriteState()) {
    log::Warn("the state of the settlement files cannot be written; lost files may go unnoticed",
              {{"file", files->state_path_}, {"errno", std::strerror(errno)}});
  }
  return files;
}

void SettlementFiles::MarkStopped() {
  state_.clean = outbox_->depth() == 0 && journal_->in_use() == 0;
  (void)WriteState();
}

bool SettlementFiles::WriteState() const {
  const std::string next = state_path_ + ".new";
  const int file = ::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return false;
  const bool written = WriteFully(file, state_.Encode()) && ::fsync(file) == 0;
  ::close(file);
  return written && ::rename(next.c_str(), state_path_.c_str()) == 0 && FlushFolderOf(state_path_);
}

}  // namespace tollgate::inference_router
