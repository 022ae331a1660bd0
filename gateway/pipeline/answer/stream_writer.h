// Writes a streamed response to the client. Sends the status with the first bytes, and keep-alive
// comments while the engine is silent (decision 25). One loop only.
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
  // exchange and encoder must live until Close. headers: sent in addition to those of every event
  // stream.
  StreamWriter(Exchange& exchange, StreamEncoder& encoder, int64_t keep_alive_ms, Headers headers)
      : exchange_(exchange),
        encoder_(encoder),
        keep_alive_ms_(keep_alive_ms),
        headers_(std::move(headers)),
        comment_written_(exchange.loop()) {}

  // Starts the keep-alive timer.
  void Open() { ArmTimer(); }
  // Replaces the headers of the constructor. Call before the status is sent.
  void SetHeaders(Headers headers) { headers_ = std::move(headers); }
  // Whether the status has been sent.
  bool begun() const { return begun_; }
  // Comments are written only between these two calls, while the request waits for the engine.
  void BeginWait() { waiting_ = true; }
  Task<void> EndWait();
  // Writes once, after the status if that was not sent yet. Returns false if the client
  // disconnected.
  Task<bool> Write(std::string bytes);
  // Stops the keep-alive timer. Do not call between BeginWait and EndWait.
  void Close();

 private:
  void ArmTimer();
  static Task<void> WriteComment(std::shared_ptr<StreamWriter> self);

  Exchange& exchange_;
  StreamEncoder& encoder_;
  const int64_t keep_alive_ms_;
  Headers headers_;  // until the status is sent
  Notify comment_written_;
  Loop::TimerId timer_ = 0;
  bool begun_ = false;
  bool disconnected_ = false;
  bool waiting_ = false;
  bool writing_comment_ = false;
  bool closed_ = false;
  bool wrote_since_timer_ = false;
};

}  // namespace tollgate::gateway
