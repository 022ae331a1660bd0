// Server-sent events: an incremental reader and helpers to write them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tollgate::http {

// Takes bytes cut anywhere and gives complete events. Follows the HTML standard: LF, CRLF and CR line
// ends, a leading byte order mark, comments skipped, several data lines joined with LF, an event left
// unfinished at the end of the stream dropped. Events without data are skipped.
//
//   reader.Feed(bytes);
//   while (reader.Next(&event) == SseReader::Status::kEvent) …
class SseReader {
 public:
  struct Event {
    std::string_view name;  // empty: "message"
    std::string_view data;
    std::string_view id;
  };
  enum class Status {
    kEvent,
    kNeedMore,
    kTooLarge,  // an event above the limit; the reader is of no more use
  };

  // Bytes of one event, comments before it included.
  explicit SseReader(size_t max_event_bytes = 1 << 20) : max_event_bytes_(max_event_bytes) {}

  // Adds bytes. They are looked at in place when nothing was left over from before, so they must stay
  // where they are until Next has said kNeedMore.
  void Feed(std::string_view bytes);
  // The next event; its views are valid until the next call of Next or Feed.
  Status Next(Event* event);
  // Whether part of an event has come whose end has not.
  bool has_partial() const { return position_ < view_.size() || in_event_; }
  // As for a new stream.
  void Reset();

 private:
  enum class LineResult { kLine, kNone };
  LineResult NextLine(std::string_view* line);
  void Keep();

  size_t max_event_bytes_;
  std::string_view view_;     // what is being read: fed bytes, or buffer_
  size_t position_ = 0;       // of the first byte not yet taken as a line
  size_t event_start_ = 0;    // of the event being gathered
  size_t scanned_ = 0;        // no line end before this place
  std::string buffer_;        // left-overs, and what was fed after them
  std::string joined_;        // data of several lines
  size_t data_begin_ = 0, data_size_ = 0, data_lines_ = 0;
  size_t name_begin_ = 0, name_size_ = 0;
  size_t id_begin_ = 0, id_size_ = 0;
  bool in_event_ = false;
  bool at_start_ = true;
  bool skip_lf_ = false;      // the last line ended with CR at the end of what had come
};

// "data: <line>\n\n". data must be one line, as compact JSON is.
void AppendSseData(std::string& out, std::string_view data);
// "event: <name>\ndata: <line>\n\n".
void AppendSseEvent(std::string& out, std::string_view name, std::string_view data);
// ": <text>\n\n".
void AppendSseComment(std::string& out, std::string_view text);

}  // namespace tollgate::http
