#include "common/http/client.h"

#include "common/base/try.h"
#include "common/http/client_connection.h"
#include "common/http/request_writer.h"
#include "common/http/response_reader.h"

namespace tollgate::http {
namespace {

using Kind = ClientError::Kind;

// Most body bytes in the input buffer.
constexpr size_t kBodyBuffer = 16 * 1024;
// Most 1xx responses before a response: each of them extends the wait for the head.
constexpr int kMaxInterim = 16;

}  // namespace

std::optional<BaseUrl> ParseBaseUrl(std::string_view url) {
  BaseUrl base;
  base.origin.tls = url.starts_with("https://");
  if (!base.origin.tls && !url.starts_with("http://")) return std::nullopt;
  base.origin.port = base.origin.tls ? 443 : 80;
  url.remove_prefix(url.find("//") + 2);
  size_t slash = url.find('/');
  std::string_view authority = url.substr(0, slash);
  if (slash != std::string_view::npos) base.path = url.substr(slash);
  while (!base.path.empty() && base.path.back() == '/') base.path.pop_back();
  if (base.path.find_first_of(" ?#\r\n\t") != std::string::npos) return std::nullopt;

  size_t colon = authority.rfind(':');
  bool v6 = authority.starts_with("[");
  size_t bracket = authority.find(']');
  if (v6 && bracket == std::string_view::npos) return std::nullopt;
  if (v6 && colon < bracket) colon = std::string_view::npos;
  std::string_view host = authority.substr(0, colon);
  if (v6) {
    if (host.back() != ']') return std::nullopt;
    host = host.substr(1, host.size() - 2);
  }
  if (host.empty() || host.find_first_of(" @\r\n\t") != std::string_view::npos) return std::nullopt;
  base.origin.host = host;
  if (colon != std::string_view::npos) {
    std::string_view port = authority.substr(colon + 1);
    if (port.empty() || port.size() > 5) return std::nullopt;
    int number = 0;
    for (char c : port) {
      if (c < '0' || c > '9') return std::nullopt;
      number = number * 10 + (c - '0');
    }
    if (number < 1 || number > 65535) return std::nullopt;
    base.origin.port = static_cast<uint16_t>(number);
  }
  return base;
}

Client::Client(Loop& loop, ClientOptions options)
    : pool_(std::make_shared<ClientPool>(loop, options)) {}
Client::~Client() = default;

size_t Client::idle_connections() const { return pool_->size(); }

Task<ClientResult<WholeResponse>> Client::Fetch(ClientRequest request, size_t max_body_bytes) {
  ClientCall call(*this);
  CO_TRY(auto head, co_await call.Send(std::move(request)));
  CO_TRY(auto body, co_await call.ReadAll(max_body_bytes));
  co_return WholeResponse{std::move(head), std::move(body)};
}

struct ClientCall::State {
  std::shared_ptr<ClientPool> pool;
  std::shared_ptr<ClientConnection> connection;
  ResponseReader reader;
  // Consumed bytes at the front of the input that the caller may still use.
  size_t handed_out = 0;
  bool unread = true;  // the input may hold bytes of the body that the reader has not seen
  int64_t head_timeout_ms = 0;
  int64_t idle_timeout_ms = 0;
  bool sent = false;
  bool response_started = false;
  bool aborted = false;
  bool done = false;
  std::optional<ClientError> failure;  // returned again by later reads

  Fail<ClientError> Broken(Kind kind, std::string message) {
    done = true;
    if (aborted) kind = Kind::kAborted;
    if (connection) connection->Reset();
    if (!failure) failure = ClientError{kind, std::move(message), response_started};
    return Fail{*failure};
  }
  Fail<ClientError> Broken(error_code error) {
    return Broken(error == asio::error::timed_out ? Kind::kTimeout : Kind::kBroken,
                  error.message());
  }
  void Finish();
  Task<error_code> Exchange(std::string_view head, std::string_view body);
  Task<error_code> ReadHead();
  Task<ClientResult<ResponseHead>> TakeHead(bool to_head_request);
  ClientResult<std::string_view> TakeBody();
};

// Called after the whole response was read.
void ClientCall::State::Finish() {
  done = true;
  if (!connection) return;
  // With bytes after the end of the response, the connection cannot be reused safely.
  bool clean = connection->input.size() == handed_out;
  if (reader.framing().keep_alive && clean && connection->open()) {
    connection->input.clear();
    pool->Give(std::move(connection));
  }
  connection = nullptr;
}

// Sends the request and waits for the first bytes of the response.
Task<error_code> ClientCall::State::Exchange(std::string_view head, std::string_view body) {
  error_code error = co_await connection->SendAll(head, body, idle_timeout_ms);
  sent = sent || !error;
  // A server may respond and close before it has received the whole body. Its response is used.
  if (error == asio::error::timed_out || aborted) co_return error;
  error_code read_error =
      co_await connection->ReadSome(pool->options().max_head_bytes, head_timeout_ms);
  if (connection->input.size() > 0) response_started = true;
  if (response_started) co_return error_code();
  co_return error ? error : read_error;
}

Task<ClientResult<ResponseHead>> ClientCall::State::TakeHead(bool to_head_request) {
  size_t limit = pool->options().max_head_bytes;
  size_t searched = 0;
  int interim = 0;
  while (true) {
    size_t size = FindHeadEnd(connection->view(), &searched);
    if (size == 0) {
      error_code error = co_await connection->ReadSome(limit, head_timeout_ms);
      if (error == asio::error::no_buffer_space) {
        co_return Broken(Kind::kProtocol, "the head of the response is too large");
      }
      if (error) co_return Broken(error);
      continue;
    }
    ResponseHead head;
    const char* wrong = reader.ReadHead(connection->view().substr(0, size), to_head_request, &head);
    if (wrong != nullptr) co_return Broken(Kind::kProtocol, wrong);
    connection->input.consume(size);
    searched = 0;
    if (head.status < 200) {
      if (++interim > kMaxInterim) co_return Broken(Kind::kProtocol, "too many interim responses");
      continue;
    }
    if (reader.framing().body == ResponseFraming::Body::kNone) Finish();
    co_return head;
  }
}

// Returns the body bytes in the input; empty if there are none.
ClientResult<std::string_view> ClientCall::State::TakeBody() {
  const ResponseReader::Body body = reader.ReadBody(
      static_cast<char*>(connection->input.data().data()), connection->input.size());
  if (body.status == ResponseReader::Status::kBad) {
    return Broken(Kind::kProtocol, "malformed body");
  }
  if (body.status == ResponseReader::Status::kDone) done = true;
  handed_out = body.consumed;
  return body.payload;
}

ClientCall::ClientCall(Client& client) : state_(std::make_shared<State>()) {
  state_->pool = client.pool_;
}

ClientCall::~ClientCall() {
  if (state_->connection && state_->done) state_->Finish();
  if (state_->connection) state_->connection->Reset();
}

bool ClientCall::sent() const { return state_->sent; }

void ClientCall::Abort() {
  state_->aborted = true;
  if (state_->connection) state_->connection->Reset();
}

Task<ClientResult<ResponseHead>> ClientCall::Send(ClientRequest request) {
  auto state = state_;
  const ClientOptions& options = state->pool->options();
  state->head_timeout_ms =
      request.head_timeout_ms > 0 ? request.head_timeout_ms : options.head_timeout_ms;
  state->idle_timeout_ms =
      request.idle_timeout_ms > 0 ? request.idle_timeout_ms : options.idle_timeout_ms;
  const std::string head = WriteRequestHead(request);
  if (head.empty())
    co_return state->Broken(Kind::kProtocol, "a header of the request is too large");
  bool fresh = false;
  while (true) {
    if (state->aborted) co_return state->Broken(Kind::kAborted, "aborted");
    state->connection = fresh ? nullptr : state->pool->Take(request.origin);
    fresh = state->connection == nullptr;
    if (fresh) {
      state->connection = std::make_shared<ClientConnection>(state->pool->loop(), request.origin);
      error_code error = co_await state->connection->Connect(options);
      if (error) {
        const std::string& why = state->connection->tls_failure();
        co_return state->Broken(Kind::kConnect, why.empty() ? error.message() : "TLS: " + why);
      }
    }
    error_code error = co_await state->Exchange(head, request.body);
    if (!error) break;
    if (fresh || state->aborted || error == asio::error::timed_out) co_return state->Broken(error);
    fresh = true;  // the reused connection was lost: one retry on a new connection
    state->connection->Reset();
  }
  co_return co_await state->TakeHead(request.method == "HEAD");
}

Task<ClientResult<std::string_view>> ClientCall::ReadSome() {
  auto state = state_;
  if (state->failure) co_return Fail{*state->failure};
  while (true) {
    // The caller no longer uses the bytes of the previous read.
    if (state->connection) state->connection->input.consume(state->handed_out);
    state->handed_out = 0;
    if (state->done) {
      if (state->aborted) co_return state->Broken(Kind::kAborted, "aborted");
      state->Finish();
      co_return std::string_view();
    }
    if (!state->connection || state->aborted) co_return state->Broken(Kind::kAborted, "aborted");
    if (state->unread) {
      state->unread = false;
      auto bytes = state->TakeBody();
      if (!bytes.ok() || !bytes->empty()) co_return bytes;
      continue;
    }
    error_code error = co_await state->connection->ReadSome(kBodyBuffer, state->idle_timeout_ms);
    state->unread = true;
    if (error == asio::error::eof && !state->aborted && state->reader.ReadEnd()) {
      state->done = true;
    } else if (error) {
      co_return state->Broken(error);
    }
  }
}

Task<ClientResult<std::string>> ClientCall::ReadAll(size_t max_bytes) {
  std::string body;
  while (true) {
    CO_TRY(auto bytes, co_await ReadSome());
    if (bytes.empty()) co_return body;
    if (bytes.size() > max_bytes - body.size()) {
      co_return state_->Broken(Kind::kProtocol, "the response is too large");
    }
    body.append(bytes);
  }
}

}  // namespace tollgate::http
