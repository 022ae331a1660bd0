#include "services/inference_router/settlement/journal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "common/base/crypto.h"
#include "common/base/id.h"
#include "common/observability/log.h"
#include "services/inference_router/settlement/slot_counters.h"

namespace tollgate::inference_router {
namespace {

constexpr uint32_t kFree = 0;
constexpr uint32_t kInUse = 0x544b4733;  // "TKG3"; identifies the version of the layout
constexpr size_t kSlotsPerSegment = 1024;
// The header has its own page. The number of segments follows the header.
constexpr size_t kHeaderPage = 4096;

struct Name {
  uint8_t size;
  char text[Journal::kMaxNameBytes];

  void Set(std::string_view value) {
    size = static_cast<uint8_t>(std::min(value.size(), sizeof(text)));
    std::memcpy(text, value.data(), size);
  }
  std::string_view Get() const { return {text, std::min<size_t>(size, sizeof(text))}; }
  uint32_t Crc(uint32_t seed) const { return Crc32(Get(), seed ^ size); }
};

std::atomic<uint32_t>& SegmentCount(void* header) {
  return *reinterpret_cast<std::atomic<uint32_t>*>(static_cast<char*>(header) + FileHeader::kBytes);
}

}  // namespace

struct alignas(64) JournalSlot::Layout {
  SlotCounters<2> usage;  // prompt, completion: a separate cache line
  SlotCounters<5> details;
  std::atomic<uint32_t> state;
  uint32_t crc;  // covers request_id to streamed
  char request_id[Id::kBytes];
  Name workspace_id;
  Name key_id;
  Name model;
  uint8_t streamed;  // lowest bit: streamed; the bits above: number of the attempt

  uint32_t engine_crc;
  Name engine_id;

  uint32_t Crc() const {
    uint32_t crc = Crc32(std::string_view(request_id, sizeof(request_id)));
    for (const Name* name : {&workspace_id, &key_id, &model}) crc = name->Crc(crc);
    return Crc32(std::string_view(reinterpret_cast<const char*>(&streamed), 1), crc);
  }
  // Each request has its own seed, so that counters of another request are not accepted.
  uint64_t Seed() const {
    uint64_t halves[2];
    std::memcpy(halves, request_id, sizeof(halves));
    return MixWord(MixWord(kInUse, halves[0]), halves[1]);
  }
};

struct Journal::Segment {
  static constexpr size_t kSlotBytes = 768;
  static constexpr size_t kBytes = kSlotBytes * kSlotsPerSegment;
  static_assert(sizeof(JournalSlot::Layout) <= kSlotBytes && kSlotBytes % 64 == 0);
  static_assert(kBytes % kHeaderPage == 0);

  void* memory = nullptr;
  std::vector<JournalSlot> slots;
};

void JournalSlot::Start() {
  seed_ = layout_->Seed();
  usage_version_ = details_version_ = 0;
  details_ = {};
  SetUsage(0, 0);
  WriteDetails();
}

void JournalSlot::SetEngine(std::string_view engine_id) {
  layout_->engine_id.Set(engine_id);
  layout_->engine_crc = layout_->engine_id.Crc(0);
}

void JournalSlot::SetUsage(int64_t prompt, int64_t completion) {
  layout_->usage.Write(seed_, ++usage_version_, {prompt, completion});
}

void JournalSlot::WriteDetails() {
  layout_->details.Write(seed_, ++details_version_,
                         {details_.accepted, details_.sequence, details_.cached,
                          details_.cache_write, details_.reasoning});
}

void JournalSlot::SetAccepted() {
  details_.accepted = 1;
  WriteDetails();
}

void JournalSlot::SetDetails(int64_t cached, int64_t cache_write, int64_t reasoning) {
  details_.cached = cached;
  details_.cache_write = cache_write;
  details_.reasoning = reasoning;
  WriteDetails();
}

int64_t JournalSlot::NextSequence() {
  ++details_.sequence;
  WriteDetails();
  return details_.sequence;
}

Result<std::unique_ptr<Journal>> Journal::Open(const std::string& path, OpenAs open) {
  if (open.boot_id.empty()) open.boot_id = CurrentBootId();
  auto fails = [&path](const char* what) {
    return Internal(std::string("cannot ") + what + " " + path + ": " + std::strerror(errno));
  };
  struct stat status{};
  const int64_t size = ::stat(path.c_str(), &status) == 0 ? status.st_size : -1;
  const auto header = ReadHeader(path, kJournalMagic);
  const FileCheck check = CheckFile(open, header, size);
  if (size > 0 && !header) {
    // The unreadable file is kept for inspection, because it names the requests that were running.
    if (::rename(path.c_str(), (path + ".unreadable").c_str()) != 0) return fails("set aside");
  }
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return fails("open");
  std::unique_ptr<Journal> journal(new Journal(file));
  JournalFound& found = journal->found_;
  found.check = check;
  if (!journal->MapHeader()) return fails("map");

  const size_t present =
      header
          ? (static_cast<size_t>(std::max<int64_t>(size - kHeaderPage, 0)) + Segment::kBytes - 1) /
                Segment::kBytes
          : 0;
  if (header && SegmentCount(journal->header_) > present && !IsLost(check)) {
    found.check = FileCheck::kTruncated;
  }
  const bool trusted =
      header && header->boot_id == open.boot_id &&
      header->boot_id != std::string(open.boot_id.size(), '\0') &&
      (found.check == FileCheck::kAsExpected || found.check == FileCheck::kUnannounced ||
       found.check == FileCheck::kTruncated);
  for (size_t i = 0; i < std::max<size_t>(present, 1); ++i) {
    if (!journal->AddSegment(i < present, trusted)) return fails("map");
  }
  // From here on the file belongs to this start. A file that replaces a lost one gets a new id.
  const bool same = header && found.check != FileCheck::kForeign;
  found.identity = {same ? header->identity.id : RandomBytes(Id::kBytes), open.generation};
  const std::string bytes = FileHeader{found.identity, open.boot_id}.Encode(kJournalMagic);
  std::memcpy(journal->header_, bytes.data(), bytes.size());
  if (::fsync(file) != 0 || !FlushFolderOf(path)) return fails("flush");
  return journal;
}

Journal::Journal(int file) : file_(file) {}

Journal::~Journal() {
  for (auto& segment : segments_) ::munmap(segment->memory, Segment::kBytes);
  if (header_ != nullptr) ::munmap(header_, kHeaderPage);
  ::close(file_);
}

bool Journal::MapHeader() {
  if (::posix_fallocate(file_, 0, kHeaderPage) != 0) return false;
  void* memory = ::mmap(nullptr, kHeaderPage, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED) return false;
  header_ = memory;
  return true;
}

bool Journal::AddSegment(bool scan, bool trusted) {
  const off_t offset = static_cast<off_t>(kHeaderPage + segments_.size() * Segment::kBytes);
  // Allocates blocks, so that a full disk fails here instead of raising SIGBUS on a store to the
  // mapping.
  if (::posix_fallocate(file_, offset, Segment::kBytes) != 0) return false;
  void* memory =
      ::mmap(nullptr, Segment::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, offset);
  if (memory == MAP_FAILED) return false;
  auto segment = std::make_unique<Segment>();
  segment->memory = memory;
  segment->slots.reserve(kSlotsPerSegment);
  for (size_t i = 0; i < kSlotsPerSegment; ++i) {
    auto* layout = reinterpret_cast<JournalSlot::Layout*>(static_cast<char*>(memory) +
                                                          i * Segment::kSlotBytes);
    segment->slots.push_back(JournalSlot(layout));
    JournalSlot& slot = segment->slots.back();
    if (scan && layout->state.load() != kFree) {
      Scan(slot, trusted);
    } else {
      layout->state.store(kFree);
      free_.push_back(&slot);
    }
  }
  segments_.push_back(std::move(segment));
  SegmentCount(header_).store(static_cast<uint32_t>(segments_.size()));
  return true;
}

// Reads a slot that a previous process has not released.
void Journal::Scan(JournalSlot& slot, bool trusted) {
  JournalSlot::Layout& layout = *slot.layout_;
  auto drop = [&](int64_t& count, const char* reason) {
    ++count;
    log::Warn("leaving a running request of a previous process to the ledger",
              {{"request_id", HexEncode(std::string_view(layout.request_id, Id::kBytes))},
               {"reason", reason}});
    layout.state.store(kFree);
    free_.push_back(&slot);
  };
  if (!trusted) return drop(found_.other_boot, "the journal belongs to another boot or router");
  if (layout.state.load() != kInUse || layout.crc != layout.Crc()) {
    return drop(found_.damaged, "its slot in the journal is damaged");
  }
  const auto usage = layout.usage.Read(layout.Seed());
  const auto details = layout.details.Read(layout.Seed());
  if (!usage || !details) return drop(found_.damaged, "its counters in the journal are damaged");

  ++in_use_;
  ++found_.recovered;
  if (usage->older || details->older) ++found_.older_copy;
  JournalEntry& entry = recovered_.emplace_back();
  entry.slot = &slot;
  entry.request_id.assign(layout.request_id, sizeof(layout.request_id));
  entry.workspace_id = layout.workspace_id.Get();
  entry.key_id = layout.key_id.Get();
  entry.model = layout.model.Get();
  entry.streamed = (layout.streamed & 1) != 0;
  entry.attempt = layout.streamed >> 1;
  if (layout.engine_crc == layout.engine_id.Crc(0)) entry.engine_id = layout.engine_id.Get();
  const auto& [accepted, sequence, cached, cache_write, reasoning] = details->values;
  entry.accepted = accepted != 0;
  entry.sequence = sequence;
  entry.usage.set_prompt_tokens(usage->values[0]);
  entry.usage.set_completion_tokens(usage->values[1]);
  entry.usage.set_cached_tokens(cached);
  entry.usage.set_cache_write_tokens(cache_write);
  // The two counts are written one after the other, so they may not match.
  entry.usage.set_reasoning_tokens(std::min(reasoning, usage->values[1]));
}

JournalSlot* Journal::Acquire(const JournalStart& start) {
  if (start.request_id.size() != Id::kBytes) return nullptr;
  for (std::string_view name : {start.workspace_id, start.key_id, start.model}) {
    if (name.size() > kMaxNameBytes) return nullptr;
  }
  JournalSlot* slot = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (free_.empty() && !AddSegment(false, false)) return nullptr;
    slot = free_.back();
    free_.pop_back();
    ++in_use_;
  }
  JournalSlot::Layout& layout = *slot->layout_;
  std::memcpy(layout.request_id, start.request_id.data(), Id::kBytes);
  layout.workspace_id.Set(start.workspace_id);
  layout.key_id.Set(start.key_id);
  layout.model.Set(start.model);
  layout.streamed = static_cast<uint8_t>(std::clamp(start.attempt, 0, kMaxAttempt) << 1 |
                                         (start.streamed ? 1 : 0));
  slot->SetEngine("");
  layout.crc = layout.Crc();
  slot->Start();
  layout.state.store(kInUse, std::memory_order_release);
  return slot;
}

void Journal::Release(JournalSlot* slot) {
  slot->layout_->state.store(kFree, std::memory_order_release);
  std::lock_guard lock(mutex_);
  free_.push_back(slot);
  --in_use_;
}

int64_t Journal::in_use() const {
  std::lock_guard lock(mutex_);
  return in_use_;
}

}  // namespace tollgate::inference_router
