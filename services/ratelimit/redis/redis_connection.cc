#include "services/ratelimit/redis/redis_connection.h"

#include <boost/asio/post.hpp>

#include "common/base/clock.h"
#include "services/ratelimit/redis/redis_stream.h"

namespace tollgate::ratelimit {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;
// With more bytes queued, Redis has stopped reading: further commands are refused.
constexpr size_t kMaxQueuedBytes = size_t{16} << 20;

// Appends the command in Redis's protocol.
void AppendWire(const Command& command, std::string& out) {
  out.append("*").append(std::to_string(command.size())).append("\r\n");
  for (const std::string& part : command) {
    out.append("$").append(std::to_string(part.size())).append("\r\n");
    out.append(part).append("\r\n");
  }
}

}  // namespace

RedisConnection::RedisConnection(boost::asio::io_context& context, Options options,
                                 std::function<void(const std::string&)> on_closed)
    : context_(context),
      options_(std::move(options)),
      on_closed_(std::move(on_closed)),
      reader_(redisReaderCreate()),
      in_(kReadBytes) {}

RedisConnection::~RedisConnection() = default;

void RedisConnection::Open() {
  open_until_us_ = MonotonicNowUs() + options_.open_us;
  stream_ = MakeRedisStream(context_, options_.tls);
  stream_->Connect(options_.endpoint, [self = shared_from_this()](const auto& failed, size_t) {
    if (self->closed()) return;
    if (failed) return self->Close("cannot connect: " + failed.message());
    self->Connected();
  });
}

void RedisConnection::Connected() {
  state_ = State::kShaking;
  Read();
  Shake();
}

void RedisConnection::Shake() {
  std::vector<Command> commands = options_.handshake;
  if (options_.identify) commands.push_back({"INFO", "server"});
  if (options_.only_master) commands.push_back({"ROLE"});
  if (commands.empty()) return Ready();
  for (size_t i = 0; i < commands.size(); ++i) {
    const bool last = i + 1 == commands.size();
    Queue(commands[i], open_until_us_,
          [this, last, name = commands[i][0]](BasicResult<Reply, std::string> reply) {
            if (closed()) return;
            if (!reply) return Close(reply.error());
            if (const std::string wrong = OnShaken(name, **reply); !wrong.empty()) {
              return Close(wrong);
            }
            if (last) Ready();
          });
  }
  Flush();
}

std::string RedisConnection::OnShaken(const std::string& command, const redisReply& answer) {
  if (answer.type == REDIS_REPLY_ERROR) return "refused: " + std::string(answer.str);
  if (command == "INFO") {
    constexpr std::string_view kName = "\nrun_id:";
    const std::string_view text(answer.str == nullptr ? "" : answer.str, answer.len);
    const size_t at = text.find(kName);
    if (at == std::string_view::npos) return "it does not report its run id";
    const std::string_view rest = text.substr(at + kName.size());
    server_id_ = rest.substr(0, rest.find_first_of("\r\n"));
  }
  if (command == "ROLE" && (answer.type != REDIS_REPLY_ARRAY || answer.elements == 0 ||
                            std::string_view(answer.element[0]->str) != "master")) {
    return "it is not a master";
  }
  return "";
}

void RedisConnection::Ready() {
  state_ = State::kReady;
  for (Early& early : std::exchange(early_, {})) {
    Queue(early.command, early.deadline_us, std::move(early.done));
  }
  Flush();
}

void RedisConnection::Send(const Command& command, int64_t deadline_us, ReplyDone done) {
  if (closed()) return done(Fail{std::string("the connection to Redis is closed")});
  if (out_.size() > kMaxQueuedBytes) {
    return done(Fail{std::string("too many bytes wait for Redis")});
  }
  if (!ready()) return early_.push_back({command, deadline_us, std::move(done)});
  Queue(command, deadline_us, std::move(done));
  // Commands of the same turn of the loop are sent in one write.
  if (write_planned_) return;
  write_planned_ = true;
  boost::asio::post(context_, [self = shared_from_this()] {
    self->write_planned_ = false;
    self->Flush();
  });
}

void RedisConnection::Queue(const Command& command, int64_t deadline_us, ReplyDone done) {
  AppendWire(command, out_);
  pending_.push_back({std::move(done), deadline_us});
}

void RedisConnection::Flush() {
  if (closed() || !writing_.empty() || out_.empty()) return;
  writing_.swap(out_);
  stream_->Write(writing_, [self = shared_from_this()](const auto& failed, size_t) {
    if (self->closed()) return;
    if (failed) return self->Close("cannot write: " + failed.message());
    self->writing_.clear();
    self->Flush();
  });
}

void RedisConnection::Read() {
  stream_->Read(in_.data(), in_.size(),
                [self = shared_from_this()](const auto& failed, size_t bytes) {
                  if (self->closed()) return;
                  if (failed) return self->Close("connection lost: " + failed.message());
                  self->OnBytes(bytes);
                });
}

void RedisConnection::OnBytes(size_t bytes) {
  if (redisReaderFeed(reader_.get(), in_.data(), bytes) != REDIS_OK) {
    return Close("the answer is not Redis's protocol");
  }
  while (!closed()) {
    void* object = nullptr;
    if (redisReaderGetReply(reader_.get(), &object) != REDIS_OK) {
      return Close("the answer is not Redis's protocol");
    }
    if (object == nullptr) break;
    Reply reply(static_cast<redisReply*>(object));
    if (pending_.empty()) return Close("an answer without a command");
    const Pending answered = std::move(pending_.front());
    pending_.pop_front();
    if (answered.done) answered.done(std::move(reply));
  }
  if (!closed()) Read();
}

void RedisConnection::Tick(int64_t now_us) {
  if (closed()) return;
  const auto self = shared_from_this();
  if (state_ != State::kReady && now_us >= open_until_us_) return Close("it does not answer");
  for (size_t i = 0; i < early_.size(); ++i) {
    if (!early_[i].done || now_us < early_[i].deadline_us) continue;
    const ReplyDone late = std::move(early_[i].done);
    early_.erase(early_.begin() + static_cast<ptrdiff_t>(i--));
    late(Fail{std::string("Redis did not answer in time")});
    if (closed()) return;
  }
  for (size_t i = 0; i < pending_.size() && now_us >= pending_[i].deadline_us; ++i) {
    if (const ReplyDone late = std::exchange(pending_[i].done, nullptr)) {
      late(Fail{std::string("Redis did not answer in time")});
    }
    if (closed()) return;
  }
  if (!pending_.empty() && now_us >= pending_.front().deadline_us + options_.hang_us) {
    Close("it does not answer");
  }
}

void RedisConnection::Close(const std::string& reason) {
  if (closed()) return;
  const auto self = shared_from_this();
  state_ = State::kClosed;
  if (stream_) stream_->Close();
  const Fail<std::string> lost{"Redis at " + options_.endpoint.ToString() + ": " + reason};
  for (Pending& pending : std::exchange(pending_, {})) {
    if (pending.done) pending.done(lost);
  }
  for (Early& early : std::exchange(early_, {})) early.done(lost);
  if (on_closed_) std::exchange(on_closed_, nullptr)(lost.error);
}

}  // namespace tollgate::ratelimit
