#include "services/inference_router/settlement/journal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "common/base/crypto.h"
#include "common/base/id.h"

namespace tollgate::inference_router {
namespace {

constexpr uint32_t kFree = 0;
constexpr uint32_t kInUse = 0x544b4732;  // "TKG2"; identifies the version of the layout
constexpr size_t kSlotsPerSegment = 1024;

struct Name {
  uint8_t size;
  char text[Journal::kMaxNameBytes];

  void Set(std::string_view value) {
    size = static_cast<uint8_t>(std::min(value.size(), sizeof(text)));
    std::memcpy(text, value.data(), size);
  }
  std::string Get() const { return std::string(text, std::min<size_t>(size, sizeof(text))); }
};

using Counter = std::atomic<int64_t>;
static_assert(Counter::is_always_lock_free);

}  // namespace

struct JournalSlot::Layout {
  std::atomic<uint32_t> state;
  uint32_t crc;  // of the five fields below
  char request_id[Id::kBytes];
  Name workspace_id;
  Name key_id;
  Name model;
  uint8_t streamed;

  Name engine_id;
  Counter accepted;
  Counter sequence;
  Counter prompt;
  Counter completion;
  Counter cached;
  Counter cache_write;
  Counter reasoning;

  uint32_t Crc() const {
    uint32_t crc = Crc32(std::string_view(request_id, sizeof(request_id)));
    for (const Name* name : {&workspace_id, &key_id, &model}) {
      crc = Crc32(std::string_view(name->text, name->size), crc ^ name->size);
    }
    return Crc32(std::string_view(reinterpret_cast<const char*>(&streamed), 1), crc);
  }
};

struct Journal::Segment {
  static constexpr size_t kSlotBytes = 576;
  static constexpr size_t kBytes = kSlotBytes * kSlotsPerSegment;
  static_assert(sizeof(JournalSlot::Layout) <= kSlotBytes && kSlotBytes % 64 == 0);

  void* memory = nullptr;
  std::vector<JournalSlot> slots;
};

void JournalSlot::SetEngine(std::string_view engine_id) { layout_->engine_id.Set(engine_id); }

void JournalSlot::SetAccepted() { layout_->accepted.store(1, std::memory_order_relaxed); }

void JournalSlot::SetUsage(int64_t prompt, int64_t completion) {
  layout_->prompt.store(prompt, std::memory_order_relaxed);
  layout_->completion.store(completion, std::memory_order_relaxed);
}

void JournalSlot::SetDetails(int64_t cached, int64_t cache_write, int64_t reasoning) {
  layout_->cached.store(cached, std::memory_order_relaxed);
  layout_->cache_write.store(cache_write, std::memory_order_relaxed);
  layout_->reasoning.store(reasoning, std::memory_order_relaxed);
}

int64_t JournalSlot::NextSequence() {
  const int64_t next = layout_->sequence.load(std::memory_order_relaxed) + 1;
  layout_->sequence.store(next, std::memory_order_relaxed);
  return next;
}

Result<std::unique_ptr<Journal>> Journal::Open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return Internal("cannot open " + path + ": " + std::strerror(errno));
  std::unique_ptr<Journal> journal(new Journal(file));
  struct stat status{};
  if (::fstat(file, &status) != 0) return Internal("cannot stat " + path);
  const size_t segments =
      (static_cast<size_t>(status.st_size) + Segment::kBytes - 1) / Segment::kBytes;
  for (size_t i = 0; i < std::max<size_t>(segments, 1); ++i) {
    if (!journal->AddSegment(i < segments)) {
      return Internal("cannot map " + path + ": " + std::strerror(errno));
    }
  }
  return journal;
}

Journal::Journal(int file) : file_(file) {}

Journal::~Journal() {
  for (auto& segment : segments_) ::munmap(segment->memory, Segment::kBytes);
  ::close(file_);
}

bool Journal::AddSegment(bool scan) {
  const off_t offset = static_cast<off_t>(segments_.size() * Segment::kBytes);
  // Allocates blocks, so that a full disk fails here and not as SIGBUS on a store to the mapping.
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
    JournalSlot* slot = &segment->slots.back();
    const bool in_use = scan && layout->state.load() == kInUse && layout->crc == layout->Crc();
    if (!in_use) {
      layout->state.store(kFree);
      free_.push_back(slot);
      continue;
    }
    ++in_use_;
    JournalEntry& entry = recovered_.emplace_back();
    entry.slot = slot;
    entry.request_id.assign(layout->request_id, sizeof(layout->request_id));
    entry.workspace_id = layout->workspace_id.Get();
    entry.key_id = layout->key_id.Get();
    entry.model = layout->model.Get();
    entry.engine_id = layout->engine_id.Get();
    entry.streamed = layout->streamed != 0;
    entry.sequence = layout->sequence.load();
    entry.accepted = layout->accepted.load() != 0;
    entry.usage.set_prompt_tokens(layout->prompt.load());
    entry.usage.set_completion_tokens(layout->completion.load());
    entry.usage.set_cached_tokens(layout->cached.load());
    entry.usage.set_cache_write_tokens(layout->cache_write.load());
    entry.usage.set_reasoning_tokens(layout->reasoning.load());
  }
  segments_.push_back(std::move(segment));
  return true;
}

JournalSlot* Journal::Acquire(const JournalStart& start) {
  if (start.request_id.size() != Id::kBytes) return nullptr;
  for (std::string_view name : {start.workspace_id, start.key_id, start.model}) {
    if (name.size() > kMaxNameBytes) return nullptr;
  }
  JournalSlot* slot = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (free_.empty() && !AddSegment(false)) return nullptr;
    slot = free_.back();
    free_.pop_back();
    ++in_use_;
  }
  JournalSlot::Layout& layout = *slot->layout_;
  std::memcpy(layout.request_id, start.request_id.data(), Id::kBytes);
  layout.workspace_id.Set(start.workspace_id);
  layout.key_id.Set(start.key_id);
  layout.model.Set(start.model);
  layout.streamed = start.streamed ? 1 : 0;
  layout.engine_id.Set("");
  for (Counter* counter : {&layout.accepted, &layout.sequence, &layout.prompt, &layout.completion,
                           &layout.cached, &layout.cache_write, &layout.reasoning}) {
    counter->store(0, std::memory_order_relaxed);
  }
  layout.crc = layout.Crc();
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
