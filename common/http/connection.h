// A connection of the server: reads requests one after the other, runs the handler, writes the
// response and watches for a disconnect. Internal to common/http. Used only on the thread of one
// loop.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/memory_budget.h"
#include "common/http/exchange.h"
#include "common/http/input_buffer.h"
#include "common/http/request_reader.h"
#include "common/http/response_writer.h"
#include "common/http/server_core.h"
#include "common/http/tls.h"
#include "common/runtime/loop.h"

namespace tollgate::http {

enum class ShedStep : uint8_t;
enum class SlowPart : uint8_t;

class Connection : public Exchange,
                   public IdleHook,
                   public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<ServerCore> core, Loop& loop, int shard, TcpSocket socket,
             std::unique_ptr<TlsSession> tls, std::string peer_address, ConnectionSlots::Slot slot);

  void Start();
  // connection_idle.cc. CloseNow ends a running request as if the client had disconnected.
  // Returns whether the connection was idle.
  bool CloseIfIdle();
  void CloseNow();
  // Tells the handler of a running request that it has to end.
  void EndRequest();
  // Closes the connection unless a request is running or has arrived.
  bool Evict();
  ConnectionSlots::Slot& slot() { return slot_; }
  int shard() const { return shard_; }
  const std::string& peer_address() const { return peer_address_; }

  // Exchange.
  const HttpRequest& request() const override { return request_; }
  HttpRequest& mutable_request() override { return request_; }
  Loop& loop() override { return loop_; }
  MemoryBudget* memory() override { return core_->options().memory.get(); }
  Task<bool> Send(HttpResponse response) override;
  Task<bool> BeginStream(int status, Headers headers) override;
  Task<bool> Write(std::string bytes) override;
  void SetTrailers(Headers trailers) override { trailers_ = std::move(trailers); }
  Task<void> EndStream() override;
  void Abort() override;
  void OnDisconnect(std::function<void()> callback) override;
  bool disconnected() const override { return disconnected_; }
  void OnDrainOver(std::function<void()> callback) override;
  bool drain_over() const override { return core_->drain_over(); }

 private:
  enum class State { kHead, kJudging, kBody, kHandling, kLinger, kClosed };
  enum class Deadline { kNone, kHandshake, kIdle, kHead, kBody, kWrite, kLinger };
  struct ReadDone;
  struct ReadReady;

  // connection.cc: bytes in, requests out.
  // Bytes that have arrived and are not read.
  size_t BytesWaiting();
  void StartRead();
  void OnRead(boost::system::error_code error, size_t count);
  void OnEnd();
  void Process();
  bool ProcessHead();
  bool ProcessBody();
  bool BeginBody();
  // Refuses the connection's input as an invalid request.
  void RefuseInput(RequestReader::Status status);
  void StartHandler();
  static Task<void> Run(std::shared_ptr<Connection> self);
  void FinishRequest();
  void ResetRequest();
  void AssignRequestId();
  void Refuse(const Error& error);
  void Refuse(const HttpResponse& response);
  void Linger();
  void Close();

  // connection_judge.cc: checks heads before their body is buffered.
  bool JudgeHead();
  static Task<void> AwaitVerdict(std::shared_ptr<Connection> self,
                                 Task<std::optional<HttpResponse>> pending);
  void OnVerdict(const std::optional<HttpResponse>& refusal);

  // connection_memory.cc: accounting in the memory budget.
  void Shed(ShedStep step);
  bool ShedAtHead();
  bool ReserveBody(size_t size);
  void ReleaseBodyCopies();

  // connection_tls.cc: reading and closing over TLS.
  void ReadTls(char* target, size_t room);
  void OnHandshakeFailed();
  // Closes the sending side.
  void ShutdownSend();

  // connection_watch.cc: timeouts and disconnects.
  void SetDeadline(Deadline kind, int64_t delay_ms);
  void SetIdleDeadline();
  void ClearDeadline() { deadline_ = Deadline::kNone; }
  void ArmTimer();
  void OnTimer();
  void CountSlow(SlowPart part);
  void OnBodyWindow();
  void MarkDisconnected();
  void StartProbes();
  void Probe();
  bool PeerHasReset();

  // connection_write.cc: responses.
  enum class BodyForm { kNone, kLength, kChunked, kUntilClose };
  // Writes the head of the response into head_. length: only for kLength.
  void WriteHead(int status, const Headers& headers, BodyForm form, size_t length = 0);
  void FlushHeadAtEndOfTurn();
  // Sends what the socket accepts without blocking; the rest is kept in out_. Returns false if the
  // client disconnected.
  bool TrySend(std::initializer_list<std::string_view> parts);
  // As TrySend, but keeps nothing. Returns the number of sent bytes; negative if the client
  // disconnected.
  ssize_t SendNow(std::initializer_list<std::string_view> parts);
  // Sends everything in out_.
  Task<bool> Flush();

  std::shared_ptr<ServerCore> core_;
  Loop& loop_;
  const int shard_;
  TcpSocket socket_;
  std::unique_ptr<TlsSession> tls_;  // null: plain text
  const std::string peer_address_;
  ConnectionSlots::Slot slot_;

  State state_ = State::kHead;
  InputBuffer in_;
  RequestReader reader_;
  HttpRequest request_;
  size_t body_bytes_ = 0;           // received; the handler may have moved the body out
  uint64_t body_window_bytes_ = 0;  // received on the wire in the current window
  int64_t body_started_us_ = 0;
  MemoryReservation body_memory_;  // released when the handler returns
  bool reading_ = false;
  bool end_of_input_ = false;  // the client has closed its sending side
  bool disconnected_ = false;
  bool keep_alive_ = true;

  // The response.
  std::string head_;        // reused; holds the head of a stream until it is sent
  std::string out_;         // written by the handler, not yet accepted by the socket
  bool responded_ = false;  // Send or BeginStream was called
  bool streaming_ = false;
  bool chunked_ = false;
  Headers trailers_;
  bool event_stream_ = false;
  bool ended_ = false;
  bool head_pending_ = false;  // the head of a stream is still in head_
  bool flushing_ = false;
  int probes_ = 0;
  std::function<void()> on_disconnect_;
  std::function<void()> on_drain_over_;
  RequestSummary summary_;
  int64_t started_us_ = 0;

  Deadline deadline_ = Deadline::kNone;
  int64_t deadline_us_ = 0;
  Loop::TimerId timer_ = 0;
  int64_t timer_us_ = 0;
  int64_t linger_until_us_ = 0;
  Loop::TimerId probe_timer_ = 0;
};

}  // namespace tollgate::http
