// The caller's end of a streamed answer: begins it when the first bytes are there, and keeps it
// alive with comments while the engine is silent (decisions.md 25). One loop only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/runtime/notify.h"
#include "gateway/edge/exchange.h"
#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

class StreamWriter : public std::enable_shared_from_this<StreamWriter> {
 public:
  // Both must outlive the last call; Close comes before either goes. headers: besides those of
  // every event stream.
  StreamWriter(Exchange& exchange, StreamEncoder& encoder, int64_t keep_alive_ms, Headers headers)
      : exchange_(exchange),
        encoder_(encoder),
        keep_alive_ms_(keep_alive_ms),
        headers_(std::move(headers)),
        written_(exchange.loop()) {}

  // Starts to watch for silence.
  void Open() { Arm(); }
  // The status has gone out.
  bool begun() const { return begun_; }
  // Between these two calls the request waits for the engine, and comments may be written.
  void BeginWait() { waiting_ = true; }
  Task<void> EndWait();
  // One write; begins the answer first. False: the client has gone.
  Task<bool> Write(std::string bytes);
  // No comment is written any more. Not during a wait.
  void Close();

 private:
  void Arm();
  static Task<void> WriteComment(std::shared_ptr<StreamWriter> self);

  Exchange& exchange_;
  StreamEncoder& encoder_;
  const int64_t keep_alive_ms_;
  Headers headers_;  // until the answer begins
  Notify written_;
  Loop::TimerId timer_ = 0;
  bool begun_ = false;
  bool gone_ = false;
  bool waiting_ = false;
  bool commenting_ = false;
  bool closed_ = false;
  // Whether anything was written since the timer was set.
  bool wrote_ = false;
};

}  // namespace tollgate::gateway
