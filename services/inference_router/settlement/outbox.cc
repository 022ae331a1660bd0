#include "services/inference_router/settlement/outbox.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/base/crypto.h"
#include "common/base/id.h"
#include "common/observability/log.h"

namespace tollgate::inference_router {
namespace {

// A record: length of the rest, CRC-32 of the rest, kind, id, payload. Native byte order
// (little-endian).
constexpr char kSettle = 1;
constexpr char kAcknowledge = 2;
constexpr size_t kHeader = 8;
constexpr size_t kMaxRecord = 64 * 1024;
// Compaction: a file without pending records is truncated from the first size on, one with pending
// records is rewritten from the second size on.
constexpr int64_t kTruncateBytes = 256 * 1024;
constexpr int64_t kRewriteBytes = 16 * 1024 * 1024;

void AppendRecord(std::string& out, char kind, const std::string& id, const std::string& payload) {
  std::string rest(1, kind);
  rest += id;
  rest += payload;
  const uint32_t length = static_cast<uint32_t>(rest.size());
  const uint32_t crc = Crc32(rest);
  out.append(reinterpret_cast<const char*>(&length), 4);
  out.append(reinterpret_cast<const char*>(&crc), 4);
  out += rest;
}

bool ReadFile(int file, std::string& into) {
  char buffer[64 * 1024];
  for (;;) {
    const ssize_t count = ::read(file, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    if (count == 0) return true;
    into.append(buffer, static_cast<size_t>(count));
  }
}

void FlushOrAbort(int file) {
  if (::fdatasync(file) == 0) return;
  log::Error("outbox flush failed; aborting, the next start recovers from the file",
             {{"errno", std::strerror(errno)}});
  std::abort();
}

void FlushDirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  ::fsync(file);
  ::close(file);
}

}  // namespace

Result<std::unique_ptr<Outbox>> Outbox::Open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return Internal("cannot open " + path + ": " + std::strerror(errno));
  std::unique_ptr<Outbox> outbox(new Outbox(path, file));
  if (!outbox->Replay()) return Internal("cannot read " + path + ": " + std::strerror(errno));
  FlushDirectoryOf(path);
  outbox->recovered_ = outbox->pending_;
  outbox->depth_ = static_cast<int64_t>(outbox->pending_.size());
  outbox->thread_ = std::thread([raw = outbox.get()] { raw->Run(); });
  return outbox;
}

Outbox::~Outbox() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  ::close(file_);
}

bool Outbox::Replay() {
  std::string content;
  if (!ReadFile(file_, content)) return false;
  size_t at = 0;
  while (content.size() - at >= kHeader) {
    uint32_t length = 0, crc = 0;
    std::memcpy(&length, content.data() + at, 4);
    std::memcpy(&crc, content.data() + at + 4, 4);
    if (length < 1 + Id::kBytes || length > kMaxRecord || content.size() - at - kHeader < length)
      break;
    const std::string_view rest = std::string_view(content).substr(at + kHeader, length);
    if (Crc32(rest) != crc) break;
    const std::string id(rest.substr(1, Id::kBytes));
    if (rest[0] == kSettle) {
      pending_[id] = std::string(rest.substr(1 + Id::kBytes));
    } else {
      pending_.erase(id);
    }
    at += kHeader + length;
  }
  if (at < content.size()) {
    log::Warn("outbox has a torn tail; truncating it", {{"bytes", content.size() - at}});
    if (::ftruncate(file_, static_cast<off_t>(at)) != 0) return false;
  }
  size_ = static_cast<int64_t>(at);
  return true;
}

void Outbox::Append(std::string id, std::string payload, OnDurable on_durable) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(Item{false, std::move(id), std::move(payload), std::move(on_durable)});
    ++depth_;
  }
  wake_.notify_one();
}

void Outbox::Acknowledge(std::string id) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(Item{true, std::move(id), {}, {}});
  }
  wake_.notify_one();
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
    for (const Item& item : queue_) depth_ += item.acknowledge ? 0 : 1;
  }
}

bool Outbox::WriteAll(const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::write(file_, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      log::Error("outbox write failed", {{"errno", std::strerror(errno)}});
      if (::ftruncate(file_, size_) != 0) std::abort();
      return false;
    }
    done += static_cast<size_t>(count);
  }
  size_ += static_cast<int64_t>(bytes.size());
  return true;
}

void Outbox::WriteBatch(std::vector<Item> batch) {
  std::string bytes;
  bool settles = false;
  for (const Item& item : batch) {
    if (item.acknowledge) {
      if (pending_.count(item.id) == 0) {
        // Its record is in this batch, or was never written.
        bool in_batch = false;
        for (const Item& other : batch) {
          in_batch = in_batch || (!other.acknowledge && other.id == item.id);
        }
        if (!in_batch) continue;
      }
      AppendRecord(bytes, kAcknowledge, item.id, "");
    } else {
      AppendRecord(bytes, kSettle, item.id, item.payload);
      settles = true;
    }
  }
  const bool written = bytes.empty() || WriteAll(bytes);
  if (written && settles) FlushOrAbort(file_);
  for (Item& item : batch) {
    if (item.acknowledge) {
      pending_.erase(item.id);
    } else if (written) {
      pending_[item.id] = std::move(item.payload);
    }
    if (item.on_durable) item.on_durable(written);
  }
  Compact();
}

void Outbox::Compact() {
  if (pending_.empty() && size_ >= kTruncateBytes) {
    if (::ftruncate(file_, 0) == 0) size_ = 0;
    return;
  }
  if (size_ < kRewriteBytes) return;
  std::string bytes;
  for (const auto& [id, payload] : pending_) AppendRecord(bytes, kSettle, id, payload);
  const int64_t live = static_cast<int64_t>(bytes.size());
  if (live * 2 > size_) return;
  const std::string rewritten = path_ + ".new";
  const int file =
      ::open(rewritten.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::write(file, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      ::close(file);
      ::unlink(rewritten.c_str());
      return;
    }
    done += static_cast<size_t>(count);
  }
  FlushOrAbort(file);
  if (::rename(rewritten.c_str(), path_.c_str()) != 0) {
    ::close(file);
    return;
  }
  FlushDirectoryOf(path_);
  ::close(file_);
  file_ = file;
  size_ = live;
}

}  // namespace tollgate::inference_router
