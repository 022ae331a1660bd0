// What one caller asked, what it received, and whether it may have received that: a whole answer,
// an error of the catalog, or a failure in the stream; from one engine only, and without an
// engine's own texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tollgate::test {

enum class Surface { kChat, kCompletions, kMessages, kResponses, kEmbeddings };
inline constexpr int kSurfaces = 5;
const char* PathOf(Surface surface);

struct Question {
  Surface surface = Surface::kChat;
  bool streamed = false;
  std::string model;
  std::string tag;  // its x-request-id, and in every token of its answer
  std::string body;
};

struct Answer {
  int status = 0;  // 0: no response
  std::string type;
  std::string bytes;
  std::string error;   // error of the connection
  bool ended = false;  // the transfer ended properly
  bool left = false;   // the caller disconnected before the end
};

struct Verdict {
  enum class End { kWhole, kRefused, kFailedInStream, kLeft, kNone };
  End end = End::kNone;
  int status = 0;
  std::string code;         // code of an error
  std::string mark;         // "engine.number" of its tokens; empty: it has none
  int64_t tokens = 0;       // tokens received
  int64_t prompt_told = 0;  // usage, as reported to the caller
  int64_t output_told = 0;
  std::vector<std::string> wrong;  // content that a caller must never get
};

Verdict Judge(const Question& question, const Answer& answer);

}  // namespace tollgate::test
