// Server-sent events: an incremental reader and helpers to write them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tollgate::http {

// Takes bytes cut anywhere and gives complete events. Follows the HTML standard: LF, CRLF and CR
// line ends, a leading byte order mark, comments skipped, several data lines joined with LF, an
// event left unfinished at the end of the stream dropped. Events without data are skipped.
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
  SseReader(const SseReader&) = delete;
  SseReader& operator=(const SseReader&) = delete;

  // Adds bytes. They are looked at in place when nothing was left over from before, so they must
  // stay where they are until Next has said kNeedMore.
  void Feed(std::string_view bytes);
  // The next event; its views are valid until the next call of Next or Feed.
  Status Next(Event* event);
  // Whether part of an event has come whose end has not.
  bool has_partial() const { return in_event_ || position_ < view_.size(); }
  // As for a new stream.
  void Reset();

 private:
  struct Piece {
    size_t begin = 0;
    size_t size = 0;
  };
  bool NextLine(std::string_view* line);
  void TakeLine(std::string_view line);
  void AddData(size_t begin, size_t size);
  void StartEvent();
  void Keep();
  std::string_view At(const Piece& piece) const { return view_.substr(piece.begin, piece.size); }

  size_t max_event_bytes_;
  std::string_view view_;   // what is being read: the bytes fed, or buffer_
  std::string buffer_;      // what was left over, and what was fed after it
  size_t position_ = 0;     // of the first byte not yet taken as a line
  size_t scanned_ = 0;      // there is no line end before this place
  size_t event_start_ = 0;  // of the event being gathered
  // Places in view_ of the event being gathered.
  Piece name_, id_, data_;
  size_t data_lines_ = 0;
  std::string joined_;     // the data, when it has several lines
  bool in_event_ = false;  // a line of an event has been taken, its empty line has not
  bool at_start_ = true;
  bool skip_lf_ = false;  // the last line ended with a CR that was the last byte there was
};

// "data: <line>\n\n". data must be one line, as compact JSON is.
void AppendSseData(std::string& out, std::string_view data);
// "event: <name>\ndata: <line>\n\n".
void AppendSseEvent(std::string& out, std::string_view name, std::string_view data);
// ": <text>\n\n".
void AppendSseComment(std::string& out, std::string_view text);

}  // namespace tollgate::http
