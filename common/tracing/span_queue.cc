#include "common/tracing/span_queue.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace tollgate::tracing {
namespace {

size_t BytesOf(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return text->size();
  size_t bytes = 0;
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
    for (const std::string& one : *list) bytes += sizeof one + one.size();
  }
  return bytes;
}

size_t BytesOf(const std::vector<Span>& spans) {
  size_t bytes = 0;
  for (const Span& span : spans) bytes += span.Bytes();
  return bytes;
}

}  // namespace

size_t Span::Bytes() const {
  size_t bytes = sizeof *this + name.size() + events.size() * sizeof(SpanEvent);
  for (const Attribute& attribute : attributes) {
    bytes += sizeof attribute + BytesOf(attribute.second);
  }
  return bytes;
}

bool SpanQueue::Put(std::vector<Span> spans) {
  const size_t bytes = BytesOf(spans);
  std::lock_guard lock(mutex_);
  if (closed_ || bytes_ + bytes > max_bytes_) return false;
  bytes_ += bytes;
  const bool first = spans_.empty();
  spans_.insert(spans_.end(), std::make_move_iterator(spans.begin()),
                std::make_move_iterator(spans.end()));
  // Wakes the exporter at most twice: for the first span, which starts the linger time, and when a
  // message is full.
  if (first || (wanted_ > 0 && spans_.size() >= wanted_)) wake_.notify_one();
  return true;
}

std::vector<Span> SpanQueue::Take(size_t most, int64_t linger_ms) {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return closed_ || !spans_.empty(); });
  wanted_ = most;
  wake_.wait_for(lock, std::chrono::milliseconds(linger_ms),
                 [this, most] { return closed_ || spans_.size() >= most; });
  wanted_ = 0;
  const auto end = spans_.begin() + static_cast<ptrdiff_t>(std::min(most, spans_.size()));
  std::vector<Span> taken(std::make_move_iterator(spans_.begin()), std::make_move_iterator(end));
  spans_.erase(spans_.begin(), end);
  taken_bytes_ = BytesOf(taken);
  return taken;
}

void SpanQueue::Forget() {
  std::lock_guard lock(mutex_);
  bytes_ -= std::exchange(taken_bytes_, 0);
}

void SpanQueue::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  wake_.notify_all();
}

bool SpanQueue::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

size_t SpanQueue::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

size_t SpanQueue::size() const {
  std::lock_guard lock(mutex_);
  return spans_.size();
}

}  // namespace tollgate::tracing
