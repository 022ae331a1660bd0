#include "services/inference_router/settlement/outbox.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "common/base/crypto.h"
#include "common/base/id.h"
#include "common/base/try.h"
#include "common/observability/log.h"
#include "services/inference_router/settlement/quarantine.h"

namespace tollgate::inference_router {
namespace {

// Compaction: a file without pending records is truncated at the first size, a file with pending
// records is rewritten at the second size.
constexpr int64_t kTruncateBytes = 256 * 1024;
constexpr int64_t kRewriteBytes = 16 * 1024 * 1024;

void FlushOrAbort(int file) {
  if (::fdatasync(file) == 0) return;
  log::Error("outbox flush failed; aborting, the next start recovers from the file",
             {{"errno", std::strerror(errno)}});
  std::abort();
}

}  // namespace

Result<std::unique_ptr<Outbox>> Outbox::Open(const std::string& path, OpenAs open) {
  if (open.boot_id.empty()) open.boot_id = CurrentBootId();
  std::unique_ptr<Outbox> outbox(new Outbox(path));
  TRY(outbox->Replay(open));
  outbox->recovered_ = outbox->pending_;
  outbox->depth_ = static_cast<int64_t>(outbox->pending_.size());
  outbox->thread_ = std::thread([raw = outbox.get()] { raw->Run(); });
  pthread_setname_np(outbox->thread_.native_handle(), "outbox");
  return outbox;
}

Outbox::~Outbox() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (file_ >= 0) ::close(file_);
}

Result<void> Outbox::Replay(const OpenAs& open) {
  struct stat status{};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  std::string content;
  if (exists) {
    std::ifstream file(path_, std::ios::binary);
    content.assign(std::istreambuf_iterator<char>(file), {});
    if (!file || content.size() < static_cast<size_t>(status.st_size)) {
      return Internal("cannot read " + path_ + ": " + std::strerror(errno));
    }
  }
  const auto header = FileHeader::Decode(kOutboxMagic, content);
  check_ = CheckFile(open, header, exists ? static_cast<int64_t>(content.size()) : -1);
  const bool old_format = !header && IsOldOutbox(content);
  // A damaged header is treated as bytes without a record.
  const OutboxContent found = ReadOutbox(content, header ? FileHeader::kBytes : 0, old_format);
  if (found.torn_bytes > 0) {
    log::Warn("the outbox ends in a record that was being written; dropping it",
              {{"bytes", found.torn_bytes}});
  }
  for (const OutboxContent::Range& range : found.damaged) {
    if (!Quarantine(QuarantinePath(),
                    {.reason = "corrupt",
                     .offset = static_cast<int64_t>(range.offset),
                     .request_id = {},
                     .data = std::string_view(content).substr(range.offset, range.size)})) {
      return Internal("cannot write " + QuarantinePath() + ", and " + path_ + " is damaged");
    }
  }
  pending_ = found.pending;
  const bool same = header && check_ != FileCheck::kForeign;
  header_.identity = {same ? header->identity.id : RandomBytes(Id::kBytes), open.generation};
  header_.boot_id = open.boot_id;
  size_ = static_cast<int64_t>(content.size() - found.torn_bytes);
  const bool sound = header && found.damaged.empty();
  if (sound ? !TakeOver() : !Rewrite()) {
    return Internal("cannot write " + path_ + ": " + std::strerror(errno));
  }
  return {};
}

// Needs no disk space, so that a router can start on a full disk.
bool Outbox::TakeOver() {
  const int file = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const std::string bytes = header_.Encode(kOutboxMagic);
  const bool written =
      ::pwrite(file, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()) &&
      ::ftruncate(file, static_cast<off_t>(size_)) == 0;
  if (written) FlushOrAbort(file);
  ::close(file);
  if (!written) return false;
  file_ = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  return file_ >= 0;
}

void Outbox::Push(Item item) {
  {
    std::lock_guard lock(mutex_);
    if (item.action == Action::kAppend) ++depth_;
    queue_.push_back(std::move(item));
  }
  wake_.notify_one();
}

void Outbox::Append(std::string key, std::string payload, OnDurable on_durable) {
  Push({Action::kAppend, std::move(key), std::move(payload), std::move(on_durable)});
}

void Outbox::Acknowledge(std::string key) { Push({Action::kAcknowledge, std::move(key), {}, {}}); }

void Outbox::MoveToQuarantine(std::string key, std::string payload, const char* reason) {
  Push({Action::kQuarantine, std::move(key), std::move(payload), {}, reason});
}

int64_t Outbox::depth() const {
  std::lock_guard lock(mutex_);
  return depth_;
}

void Outbox::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::vector<Item> batch;
    batch.swap(queue_);
    lock.unlock();
    WriteBatch(std::move(batch));
    lock.lock();
    depth_ = static_cast<int64_t>(pending_.size());
    for (const Item& item : queue_) depth_ += item.action == Action::kAppend ? 1 : 0;
  }
}

bool Outbox::WriteAll(const std::string& bytes) {
  if (!WriteFully(file_, bytes)) {
    log::Error("outbox write failed", {{"errno", std::strerror(errno)}});
    if (::ftruncate(file_, size_) != 0) std::abort();
    return false;
  }
  size_ += static_cast<int64_t>(bytes.size());
  return true;
}

void Outbox::WriteBatch(std::vector<Item> batch) {
  std::string bytes;
  bool settles = false;
  for (Item& item : batch) {
    if (item.action == Action::kAppend) {
      AppendOutboxRecord(bytes, RecordKind::kSettle, item.key, item.payload);
      settles = true;
      continue;
    }
    if (item.action == Action::kQuarantine) {
      // If the quarantine cannot be written, the record stays, and the next start tries again.
      if (!Quarantine(QuarantinePath(), {.reason = item.reason,
                                         .offset = -1,
                                         .request_id = std::string(RequestIdOf(item.key)),
                                         .data = item.payload})) {
        continue;
      }
      item.action = Action::kAcknowledge;
    }
    // Otherwise the record was never written.
    auto in_batch = [&batch, &item] {
      return std::any_of(batch.begin(), batch.end(), [&item](const Item& other) {
        return other.action == Action::kAppend && other.key == item.key;
      });
    };
    if (pending_.count(item.key) != 0 || in_batch()) {
      AppendOutboxRecord(bytes, RecordKind::kAcknowledge, item.key, "");
    }
  }
  const bool written = bytes.empty() || WriteAll(bytes);
  if (written && settles) FlushOrAbort(file_);
  for (Item& item : batch) {
    if (item.action == Action::kAcknowledge) {
      pending_.erase(item.key);
    } else if (item.action == Action::kAppend && written) {
      pending_[item.key] = std::move(item.payload);
    }
    if (item.on_durable) item.on_durable(written);
  }
  Compact();
}

void Outbox::Compact() {
  if (pending_.empty() && size_ >= kTruncateBytes) {
    constexpr int64_t kEmpty = FileHeader::kBytes;
    if (::ftruncate(file_, kEmpty) == 0) size_ = kEmpty;
    return;
  }
  if (size_ < kRewriteBytes) return;
  size_t live = 0;
  for (const auto& [key, payload] : pending_) live += key.size() + payload.size();
  if (static_cast<int64_t>(live) * 2 <= size_) (void)Rewrite();
}

bool Outbox::Rewrite() {
  std::string bytes = header_.Encode(kOutboxMagic);
  for (const auto& [key, payload] : pending_) {
    AppendOutboxRecord(bytes, RecordKind::kSettle, key, payload);
  }
  const std::string rewritten = path_ + ".new";
  const int file =
      ::open(rewritten.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return false;
  if (!WriteFully(file, bytes)) {
    ::close(file);
    ::unlink(rewritten.c_str());
    return false;
  }
  FlushOrAbort(file);
  if (::rename(rewritten.c_str(), path_.c_str()) != 0) {
    ::close(file);
    return false;
  }
  (void)FlushFolderOf(path_);
  if (file_ >= 0) ::close(file_);
  file_ = file;
  size_ = static_cast<int64_t>(bytes.size());
  return true;
}

}  // namespace tollgate::inference_router
