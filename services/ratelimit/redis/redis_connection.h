// One connection to Redis: commands are pipelined, each with its own deadline. All methods and
// callbacks run on the thread of the io_context.
#pragma once

#include <hiredis/hiredis.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/redis_url.h"
#include "common/base/result.h"

namespace tollgate::ratelimit {

using redis::Endpoint;
using redis::ParseEndpoint;
using redis::ParseRedisUrl;
using redis::RedisUrl;
using redis::SlotOf;

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
// An error that Redis answers is a reply of type REDIS_REPLY_ERROR.
using Reply = std::unique_ptr<redisReply, FreeReply>;
using ReplyDone = std::function<void(BasicResult<Reply, std::string>)>;
using Command = std::vector<std::string>;

// A TCP or TLS stream.
class RedisStream;

class RedisConnection : public std::enable_shared_from_this<RedisConnection> {
 public:
  struct Options {
    Endpoint endpoint;
    boost::asio::ssl::context* tls = nullptr;  // null: plain text
    // Sent first, for example AUTH and SELECT. An error closes the connection.
    std::vector<Command> handshake;
    // Asks the server for its run id (server_id).
    bool identify = false;
    // Closes a connection to a server that is not a master.
    bool only_master = false;
    // Closes a connection that has not answered a command for this long after its deadline.
    int64_t hang_us = 200'000;
    int64_t open_us = 1'000'000;  // timeout of connecting and the handshake
  };
  // on_closed: called once, with the reason.
  RedisConnection(boost::asio::io_context& context, Options options,
                  std::function<void(const std::string& reason)> on_closed);
  ~RedisConnection();

  void Open();
  // Connected, with the handshake done.
  bool ready() const { return state_ == State::kReady; }
  bool closed() const { return state_ == State::kClosed; }
  const Endpoint& endpoint() const { return options_.endpoint; }
  // Run id of the server. It changes with a restart and differs between servers. Empty before
  // ready, or without `identify`.
  const std::string& server_id() const { return server_id_; }
  // Commands sent before ready wait for the handshake. The callback runs once: with the reply, or
  // with an error if it is late or the connection is lost; then the command may have run.
  void Send(const Command& command, int64_t deadline_us, ReplyDone done);
  // Fails late commands. Call it every few milliseconds.
  void Tick(int64_t now_us);
  void Close(const std::string& reason);

 private:
  enum class State { kOpening, kShaking, kReady, kClosed };
  struct Pending {
    ReplyDone done;  // null: already failed as late; the reply is dropped
    int64_t deadline_us = 0;
  };
  struct FreeReader {
    void operator()(redisReader* reader) const { redisReaderFree(reader); }
  };

  void Connected();
  void Shake();
  // Handles the reply to a handshake command. Returns "" or why the connection is unusable.
  std::string OnShaken(const std::string& command, const redisReply& answer);
  void Ready();
  void Queue(const Command& command, int64_t deadline_us, ReplyDone done);
  void Flush();
  void Read();
  void OnBytes(size_t bytes);

  boost::asio::io_context& context_;
  const Options options_;
  std::function<void(const std::string&)> on_closed_;
  std::unique_ptr<RedisStream> stream_;
  std::unique_ptr<redisReader, FreeReader> reader_;
  State state_ = State::kOpening;
  std::string server_id_;
  int64_t open_until_us_ = 0;
  std::deque<Pending> pending_;  // in the order of the commands
  // Commands sent before ready.
  struct Early {
    Command command;
    int64_t deadline_us;
    ReplyDone done;
  };
  std::deque<Early> early_;
  std::string out_;      // not yet passed to the socket
  std::string writing_;  // being written by the socket
  bool write_planned_ = false;
  std::vector<char> in_;
};

}  // namespace tollgate::ratelimit
