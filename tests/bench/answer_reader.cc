#include "tests/bench/answer_reader.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tollgate::bench {
namespace {

constexpr std::string_view kDone = "[DONE]\n\n";
constexpr size_t kKeptForFirstToken = 16 << 10;

// Whether an event carries text: a non-empty content member (the role event has an empty one).
bool HasText(const std::string& events) {
  constexpr std::string_view kContent = "\"content\":\"";
  for (size_t at = events.find(kContent); at != std::string::npos;
       at = events.find(kContent, at + 1)) {
    const size_t inside = at + kContent.size();
    if (inside < events.size() && events[inside] != '"') return true;
  }
  return false;
}

}  // namespace

void AnswerReader::Start(int64_t due_us) {
  *this = AnswerReader();
  due_us_ = due_us;
}

bool AnswerReader::ParseHead() {
  status_ = head_.size() > 12 ? std::atoi(head_.c_str() + 9) : 0;
  std::string lower = head_;
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  stream_ = lower.find("content-type: text/event-stream") != std::string::npos;
  if (lower.find("transfer-encoding: chunked") != std::string::npos) {
    part_ = Part::kSize;
    return true;
  }
  const size_t length = lower.find("content-length: ");
  if (length == std::string::npos) return false;
  rest_ = std::atoll(lower.c_str() + length + 16);
  part_ = Part::kSized;
  return true;
}

AnswerReader::State AnswerReader::Take(std::string_view data, int64_t now_us, bool counts,
                                       LoadReport& report) {
  if (part_ == Part::kHead) {
    const size_t before = head_.size();
    head_ += data;
    const size_t end = head_.find("\r\n\r\n", before < 3 ? 0 : before - 3);
    if (end == std::string::npos) return head_.size() > (64u << 10) ? State::kBroken : State::kMore;
    data.remove_prefix(end + 4 - before);
    head_.resize(end + 4);
    if (!ParseHead()) return State::kBroken;
    if (part_ == Part::kSized && rest_ == 0) return State::kDone;
  }
  if (part_ != Part::kSized) return Chunked(data, now_us, counts, report);
  const size_t take = std::min(data.size(), static_cast<size_t>(rest_));
  Body(data.substr(0, take), now_us, counts, report);
  rest_ -= static_cast<int64_t>(take);
  return rest_ == 0 ? State::kDone : State::kMore;
}

AnswerReader::State AnswerReader::Chunked(std::string_view data, int64_t now_us, bool counts,
                                          LoadReport& report) {
  while (!data.empty()) {
    if (part_ == Part::kData) {
      const size_t take = std::min(data.size(), static_cast<size_t>(rest_));
      Body(data.substr(0, take), now_us, counts, report);
      data.remove_prefix(take);
      rest_ -= static_cast<int64_t>(take);
      if (rest_ == 0) part_ = Part::kDataEnd;
      continue;
    }
    const size_t end = data.find('\n');
    line_ += data.substr(0, end);
    if (end == std::string_view::npos) return State::kMore;
    data.remove_prefix(end + 1);
    if (part_ == Part::kSize) {
      rest_ = std::strtoll(line_.c_str(), nullptr, 16);
      part_ = rest_ == 0 ? Part::kTrailer : Part::kData;
    } else if (part_ == Part::kDataEnd) {
      part_ = Part::kSize;
    } else {
      return State::kDone;
    }
    line_.clear();
  }
  return State::kMore;
}

void AnswerReader::Body(std::string_view data, int64_t now_us, bool counts, LoadReport& report) {
  if (data.empty()) return;
  if (counts) report.bytes += static_cast<int64_t>(data.size());
  if (!stream_) return;
  if (!first_seen_) {
    first_ += data;
    if (HasText(first_) || first_.size() > kKeptForFirstToken) {
      first_seen_ = true;
      if (counts) report.first_token.Add(now_us - due_us_);
      first_.clear();
      first_.shrink_to_fit();
    }
  }
  // An event ends with an empty line.
  const char* at = data.data();
  const char* end = at + data.size();
  while (at != end) {
    if (after_newline_ && *at == '\n') {
      after_newline_ = false;
      ++at;
      if (counts) {
        ++report.events;
        if (last_event_us_ != 0) report.gap.Add(now_us - last_event_us_);
      }
      last_event_us_ = now_us;
      continue;
    }
    const void* newline = std::memchr(at, '\n', static_cast<size_t>(end - at));
    after_newline_ = newline != nullptr;
    if (!newline) break;
    at = static_cast<const char*>(newline) + 1;
  }
  if (data.size() >= kDone.size()) {
    tail_ = data.substr(data.size() - kDone.size());
  } else {
    tail_ += data;
    if (tail_.size() > kDone.size()) tail_.erase(0, tail_.size() - kDone.size());
  }
  finished_ = tail_ == kDone;
}

}  // namespace tollgate::bench
