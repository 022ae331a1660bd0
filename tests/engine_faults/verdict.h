// What one caller asked, what it got, and whether it may have got that: a whole answer, an error of
// the catalog, or a failure in the stream; of one engine only, and nothing of an engine's own
// texts.
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
  int status = 0;  // 0: none
  std::string type;
  std::string bytes;
  std::string error;   // of the connection
  bool ended = false;  // the transfer ended properly
  bool left = false;   // its caller left before the end
};

struct Verdict {
  enum class End { kWhole, kRefused, kFailedInStream, kLeft, kNone };
  End end = End::kNone;
  int status = 0;
  std::string code;         // of an error
  std::string mark;         // "engine.number" of its tokens; empty: it has none
  int64_t tokens = 0;       // seen
  int64_t prompt_told = 0;  // usage, as told
  int64_t output_told = 0;
  std::vector<std::string> wrong;  // what its caller must never get
};

Verdict Judge(const Question& question, const Answer& answer);

}  // namespace tollgate::test
