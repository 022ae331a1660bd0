#include "common/observability/line_writer.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <thread>
#include <utility>

namespace tollgate::log {
namespace {

// A write of up to PIPE_BUF bytes to a pipe that poll reports as writable does not block and does
// not interleave with lines of other processes. O_NONBLOCK would prevent blocking, too, but it
// belongs to the open file, which other processes share.
constexpr size_t kPieceBytes = 4096;
// Pause after a batch, so that busy callers need not wake the thread for every line.
constexpr std::chrono::milliseconds kRest{5};
// How often a thread that waits for the reader checks whether it should give up.
constexpr int kPollMs = 50;
// Minimum size of half a queue, whatever is configured: a few lines of maximum size.
constexpr size_t kMinHalfBytes = size_t{32} * 1024;

// As many whole lines as fit into a piece, or a part of the first line if it is longer.
std::string_view FirstPiece(std::string_view text) {
  if (text.size() <= kPieceBytes) return text;
  const size_t end = text.substr(0, kPieceBytes).rfind('\n');
  return text.substr(0, end == std::string_view::npos ? kPieceBytes : end + 1);
}

size_t CountLines(std::string_view text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

class LineWriter::State {
 public:
  explicit State(Options options)
      : options_(std::move(options)),
        half_bytes_(std::max(options_.max_queued_bytes / 2, kMinHalfBytes)) {
    // The queue has two halves: one is filled while the other is written. Reserving them here keeps
    // callers from copying the queue to grow it.
    pending_.reserve(half_bytes_);
    batch_.reserve(half_bytes_);
  }

  bool Put(std::string_view line) {
    {
      std::lock_guard lock(mutex_);
      // After a drop, all lines are dropped until the next batch, so that the line with their
      // number stands where they are missing.
      const bool full = dropped_ > 0 || pending_.size() + line.size() > half_bytes_;
      if (!full && !stopping_) {
        pending_ += line;
        queued_bytes_.fetch_add(line.size(), std::memory_order_release);
        if (idle_) {
          idle_ = false;
          wake_.notify_one();
        }
        return true;
      }
      ++dropped_;
      if (idle_) {
        idle_ = false;
        wake_.notify_one();
      }
    }
    if (options_.on_dropped) options_.on_dropped(1);
    return false;
  }

  bool Flush(int timeout_ms) {
    std::unique_lock lock(mutex_);
    const size_t target = queued_bytes_.load();
    ++flushing_;
    wake_.notify_one();
    const bool done = written_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                                        [&] { return written_bytes_.load() >= target || ended_; });
    --flushing_;
    return done && written_bytes_.load() >= target;
  }

  // Tells the thread to end once everything is written. Returns false if it does not end in time.
  bool End(int timeout_ms) {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    wake_.notify_one();
    return written_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                             [&] { return ended_.load(); });
  }

  void GiveUp() { give_up_ = true; }

  void Run() {
    thread_ = pthread_self();
    running_ = true;
    std::unique_lock lock(mutex_);
    for (;;) {
      idle_ = true;
      wake_.wait(lock, [&] { return !pending_.empty() || dropped_ > 0 || stopping_; });
      idle_ = false;
      if ((pending_.empty() && dropped_ == 0) || give_up_) break;
      WriteBatch(lock);
      if (!stopping_ && flushing_ == 0) {
        wake_.wait_for(lock, kRest, [&] { return stopping_ || flushing_ > 0; });
      }
    }
    ended_ = true;
    written_.notify_all();
  }

  void WaitInSignalHandler(int timeout_ms) const noexcept {
    if (running_ && pthread_equal(pthread_self(), thread_) != 0) return;
    // The limit is for a thread that crashed while logging: it holds the lock, so the writer cannot
    // proceed.
    constexpr int kStepMs = 2;
    for (int waited = 0; waited < timeout_ms; waited += kStepMs) {
      if (ended_ || written_bytes_.load() >= queued_bytes_.load()) return;
      const timespec step{0, kStepMs * int64_t{1'000'000}};
      nanosleep(&step, nullptr);
    }
  }

 private:
  void WriteBatch(std::unique_lock<std::mutex>& lock) {
    batch_.clear();
    std::swap(batch_, pending_);
    const size_t missing = std::exchange(dropped_, 0);
    lock.unlock();
    const size_t bytes = batch_.size();
    // Lines that could not be written are reported before this batch, lines that did not fit after
    // it.
    size_t failed = 0;
    if (unwritten_ > 0 && Write(options_.dropped_line(unwritten_)) == 0) unwritten_ = 0;
    failed += Write(batch_);
    unwritten_ += failed;
    if (missing > 0 && Write(options_.dropped_line(missing)) > 0) unwritten_ += missing;
    if (failed > 0 && options_.on_dropped && !give_up_) options_.on_dropped(failed);
    lock.lock();
    written_bytes_.fetch_add(bytes, std::memory_order_release);
    written_.notify_all();
  }

  // Returns the number of lines that could not be written.
  size_t Write(std::string_view text) {
    size_t failed = 0;
    while (!text.empty() && !give_up_) {
      const std::string_view piece = FirstPiece(text);
      if (!WritePiece(piece)) failed += CountLines(piece);
      text.remove_prefix(piece.size());
    }
    return failed + CountLines(text);
  }

  bool WritePiece(std::string_view piece) {
    while (!piece.empty()) {
      pollfd ready{options_.fd, POLLOUT, 0};
      const int polled = ::poll(&ready, 1, kPollMs);
      if (give_up_) return false;
      if (polled == 0 || (polled < 0 && errno == EINTR)) continue;
      const ssize_t written = ::write(options_.fd, piece.data(), piece.size());
      if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (written <= 0) return false;  // no reader, no space, no descriptor
      piece.remove_prefix(static_cast<size_t>(written));
    }
    return true;
  }

  const Options options_;
  const size_t half_bytes_;
  std::mutex mutex_;
  std::condition_variable wake_;     // the thread has work
  std::condition_variable written_;  // a batch is written, or the thread has ended
  std::string pending_;
  size_t dropped_ = 0;  // lines that did not fit since the last batch was taken
  bool idle_ = false;   // the thread is waiting for a line
  int flushing_ = 0;
  bool stopping_ = false;
  std::atomic<bool> ended_{false};
  std::atomic<bool> give_up_{false};
  // Bytes of accepted lines. Atomic for the signal handler.
  std::atomic<size_t> queued_bytes_{0};
  std::atomic<size_t> written_bytes_{0};
  std::atomic<bool> running_{false};
  pthread_t thread_{};
  // Used by the thread only.
  std::string batch_;
  size_t unwritten_ = 0;
};

LineWriter::LineWriter(Options options) : state_(std::make_shared<State>(std::move(options))) {
  thread_ = std::thread([state = state_] { state->Run(); });
  pthread_setname_np(thread_.native_handle(), "log");
}

LineWriter::~LineWriter() { Stop(0); }

bool LineWriter::Put(std::string_view line) { return state_->Put(line); }

bool LineWriter::Flush(int timeout_ms) { return state_->Flush(timeout_ms); }

bool LineWriter::Stop(int timeout_ms) {
  if (!thread_.joinable()) return true;
  const bool written = state_->End(timeout_ms);
  if (!written) state_->GiveUp();
  if (written || state_->End(4 * kPollMs)) {
    thread_.join();
  } else {
    // write(2) may block forever, for example at a terminal that was stopped with Ctrl-S.
    thread_.detach();
  }
  return written;
}

void LineWriter::FlushInSignalHandler(int timeout_ms) noexcept {
  state_->WaitInSignalHandler(timeout_ms);
}

}  // namespace tollgate::log
