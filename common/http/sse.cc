#include "common/http/sse.h"

#include <algorithm>
#include <cstring>

namespace tollgate::http {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

size_t Find(std::string_view text, char c, size_t from, size_t to) {
  if (from >= to) return std::string_view::npos;
  const void* found = std::memchr(text.data() + from, c, to - from);
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

}  // namespace

void SseReader::Reset() {
  buffer_.clear();
  view_ = {};
  scanned_ = position_ = 0;
  StartEvent();
  at_start_ = true;
  skip_lf_ = false;
}

void SseReader::Feed(std::string_view bytes) {
  if (event_start_ < view_.size()) {
    Keep();
    buffer_.append(bytes);
    view_ = buffer_;
    return;
  }
  view_ = bytes;
  position_ = scanned_ = event_start_ = 0;
}

// Moves the bytes of the incomplete event to buffer_.
void SseReader::Keep() {
  size_t consumed = event_start_;
  if (view_.data() == buffer_.data()) {
    buffer_.erase(0, consumed);
  } else {
    buffer_.assign(view_.substr(consumed));
  }
  view_ = buffer_;
  position_ -= consumed;
  scanned_ = std::max(scanned_, consumed) - consumed;
  event_start_ = 0;
  for (Piece* piece : {&name_, &id_, &data_}) piece->begin -= std::min(piece->begin, consumed);
}

void SseReader::StartEvent() {
  event_start_ = position_;
  name_ = id_ = data_ = {};
  data_lines_ = 0;
  in_event_ = false;
}

bool SseReader::NextLine(std::string_view* line) {
  if (skip_lf_ && position_ < view_.size()) {
    if (view_[position_] == '\n') {
      if (event_start_ == position_) ++event_start_;
      ++position_;
    }
    skip_lf_ = false;
  }
  size_t from = std::max(position_, scanned_);
  size_t line_feed = Find(view_, '\n', from, view_.size());
  size_t end = std::min(line_feed, view_.size());
  size_t carriage_return = Find(view_, '\r', from, end);
  if (carriage_return != std::string_view::npos) {
    *line = view_.substr(position_, carriage_return - position_);
    position_ = carriage_return + 1;
    if (position_ == view_.size()) {
      skip_lf_ = true;
    } else if (view_[position_] == '\n') {
      ++position_;
    }
    return true;
  }
  if (line_feed == std::string_view::npos) {
    scanned_ = view_.size();
    return false;
  }
  *line = view_.substr(position_, line_feed - position_);
  position_ = line_feed + 1;
  return true;
}

void SseReader::AddData(size_t begin, size_t size) {
  ++data_lines_;
  if (data_lines_ == 1) {
    data_ = {begin, size};
    return;
  }
  if (data_lines_ == 2) joined_.assign(At(data_));
  joined_.push_back('\n');
  joined_.append(view_.substr(begin, size));
}

void SseReader::TakeLine(std::string_view line) {
  size_t colon = line.find(':');
  if (colon == 0) return;  // a comment
  std::string_view field = line.substr(0, colon);
  size_t value_at = colon == std::string_view::npos ? line.size() : colon + 1;
  if (value_at < line.size() && line[value_at] == ' ') ++value_at;
  size_t begin = static_cast<size_t>(line.data() - view_.data()) + value_at;
  size_t size = line.size() - value_at;
  in_event_ = true;
  if (field == "data") {
    AddData(begin, size);
  } else if (field == "event") {
    name_ = {begin, size};
  } else if (field == "id") {
    id_ = {begin, size};
  }
}

SseReader::Status SseReader::Next(Event* event) {
  if (at_start_) {
    std::string_view start = view_.substr(0, kByteOrderMark.size());
    if (start.size() < kByteOrderMark.size() && kByteOrderMark.substr(0, start.size()) == start) {
      Keep();
      return Status::kNeedMore;
    }
    if (start == kByteOrderMark) position_ = event_start_ = kByteOrderMark.size();
    at_start_ = false;
  }
  std::string_view line;
  while (NextLine(&line)) {
    if (position_ - event_start_ > max_event_bytes_) return Status::kTooLarge;
    if (!line.empty()) {
      TakeLine(line);
      if (!in_event_) event_start_ = position_;
      continue;
    }
    bool complete = data_lines_ > 0;
    if (complete) {
      event->name = At(name_);
      event->id = At(id_);
      event->data = data_lines_ == 1 ? At(data_) : std::string_view(joined_);
    }
    StartEvent();
    if (complete) return Status::kEvent;
  }
  if (view_.size() - event_start_ > max_event_bytes_) return Status::kTooLarge;
  Keep();
  return Status::kNeedMore;
}

void AppendSseData(std::string& out, std::string_view data) {
  out.append("data: ").append(data).append("\n\n");
}

void AppendSseEvent(std::string& out, std::string_view name, std::string_view data) {
  out.append("event: ").append(name).append("\ndata: ").append(data).append("\n\n");
}

void AppendSseComment(std::string& out, std::string_view text) {
  out.append(": ").append(text).append("\n\n");
}

}  // namespace tollgate::http
