// Server-sent events: an incremental parser, and functions to write them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tollgate::http {

// Takes bytes in arbitrary pieces and returns complete events. Follows the HTML standard: LF, CRLF
// and CR line ends, a leading byte order mark, comments are skipped, several data lines are joined
// with LF, an incomplete event at the end of the stream is dropped. Events without data are
// skipped.
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
    kTooLarge,  // an event exceeds the limit; the reader must not be used further
  };

  // max_event_bytes: limit of one event, including comments before it.
  explicit SseReader(size_t max_event_bytes = 1 << 20) : max_event_bytes_(max_event_bytes) {}
  SseReader(const SseReader&) = delete;
  SseReader& operator=(const SseReader&) = delete;

  // Adds bytes. They are parsed in place unless an incomplete event precedes them, so they must
  // stay valid until Next has returned kNeedMore.
  void Feed(std::string_view bytes);
  // Returns the next event; its views are valid until the next call of Next or Feed.
  Status Next(Event* event);
  // Whether there is an incomplete event.
  bool has_partial() const { return in_event_ || position_ < view_.size(); }
  // Starts a new stream.
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
  std::string_view view_;   // the bytes being parsed: those of Feed, or buffer_
  std::string buffer_;      // the incomplete event, and the bytes fed after it
  size_t position_ = 0;     // start of the next line
  size_t scanned_ = 0;      // no line end between position_ and here
  size_t event_start_ = 0;  // start of the current event
  // The fields of the current event, as positions in view_.
  Piece name_, id_, data_;
  size_t data_lines_ = 0;
  std::string joined_;     // the data if it has several lines
  bool in_event_ = false;  // between the first line of an event and its empty line
  bool at_start_ = true;
  bool skip_lf_ = false;  // the last byte so far is a CR that ended a line
};

// "data: <line>\n\n". data must be one line, such as compact JSON.
void AppendSseData(std::string& out, std::string_view data);
// "event: <name>\ndata: <line>\n\n".
void AppendSseEvent(std::string& out, std::string_view name, std::string_view data);
// ": <text>\n\n".
void AppendSseComment(std::string& out, std::string_view text);

}  // namespace tollgate::http
