#include "services/dashboard/transcode/transcoder.h"

#include <google/api/httpbody.pb.h>
#include <google/protobuf/descriptor_database.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/rpc/status.pb.h>
#include <grpcpp/channel.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <set>

#include "common/base/ascii.h"
#include "common/rpc/error_status.h"
#include "services/dashboard/transcode/binding.h"
#include "services/dashboard/transcode/json_reader.h"
#include "services/dashboard/transcode/json_writer.h"
#include "services/dashboard/transcode/rpc_call.h"
#include "services/dashboard/transcode/text.h"

namespace tollgate::transcode {
namespace {

namespace pb = google::protobuf;
using grpc::StatusCode;

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kForm = "application/x-www-form-urlencoded";
constexpr std::string_view kHttpBody = "google.api.HttpBody";

std::string Upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = IsLower(c) ? static_cast<char>(c & ~0x20) : c;
  return out;
}

// The status that the caller sees. A google.rpc.Status in the details takes precedence over the
// message of the gRPC status, which has no details.
google::rpc::Status Shown(const grpc::Status& status) {
  google::rpc::Status shown;
  const std::string details = status.error_details();
  if (!details.empty() && shown.ParseFromString(details)) {
    if (shown.code() == static_cast<int>(status.error_code())) return shown;
    shown.Clear();
    shown.set_code(StatusCode::INTERNAL);
    shown.set_message("the service sent two different status codes");
    return shown;
  }
  shown.Clear();
  shown.set_code(status.error_code());
  shown.set_message(status.error_message());
  return shown;
}

// The media type of a content type in lower case, without parameters; nullopt if there is none.
std::optional<std::string> MediaType(std::string_view content_type) {
  content_type = content_type.substr(0, content_type.find(';'));
  while (content_type.ends_with(' ')) content_type.remove_suffix(1);
  std::string out;
  int slashes = 0;
  for (const char c : content_type) {
    constexpr std::string_view kTokenChars = "!#$%&'*+-.^_`|~";
    if (c == '/' && !out.empty() && slashes++ == 0) {
      out += c;
    } else if (IsAlnum(c) || kTokenChars.find(c) != std::string_view::npos) {
      out += IsUpper(c) ? static_cast<char>(c | 0x20) : c;
    } else {
      return std::nullopt;
    }
  }
  if (out.empty() || out.back() == '/') return std::nullopt;
  return out;
}

http::HttpResponse ErrorResponse(const google::rpc::Status& status, http::Headers headers) {
  http::HttpResponse response;
  response.headers.emplace_back("content-type", kJson);
  if (status.code() == StatusCode::UNAUTHENTICATED)
    response.headers.emplace_back("www-authenticate", status.message());
  auto body = WriteMessage(status);
  if (!body.ok()) {
    response.status = 500;
    response.body = R"({"code": 13, "message": "failed to marshal error message"})";
    return response;
  }
  response.status = HttpStatusOf(status.code());
  response.body = std::move(*body);
  response.headers.insert(response.headers.end(), headers.begin(), headers.end());
  return response;
}

}  // namespace

int HttpStatusOf(int code) {
  switch (code) {
    case StatusCode::OK:
      return 200;
    case StatusCode::CANCELLED:
      return 499;
    case StatusCode::INVALID_ARGUMENT:
    case StatusCode::FAILED_PRECONDITION:
    case StatusCode::OUT_OF_RANGE:
      return 400;
    case StatusCode::DEADLINE_EXCEEDED:
      return 504;
    case StatusCode::NOT_FOUND:
      return 404;
    case StatusCode::ALREADY_EXISTS:
    case StatusCode::ABORTED:
      return 409;
    case StatusCode::PERMISSION_DENIED:
      return 403;
    case StatusCode::RESOURCE_EXHAUSTED:
      return 429;
    case StatusCode::UNIMPLEMENTED:
      return 501;
    case StatusCode::UNAVAILABLE:
      return 503;
    case StatusCode::UNAUTHENTICATED:
      return 401;
    default:
      return 500;
  }
}

std::vector<const pb::ServiceDescriptor*> ServicesOf(std::string_view package) {
  std::vector<std::string> files;
  pb::DescriptorPool::internal_generated_database()->FindAllFileNames(&files);
  std::sort(files.begin(), files.end());
  std::vector<const pb::ServiceDescriptor*> services;
  for (const std::string& name : files) {
    const auto* file = pb::DescriptorPool::generated_pool()->FindFileByName(name);
    if (file == nullptr || file->package() != package) continue;
    for (int i = 0; i < file->service_count(); ++i) services.push_back(file->service(i));
  }
  return services;
}

// The processing of one request.
class Transcoder::Call {
 public:
  Call(const Transcoder& owner, http::Exchange& exchange, Metadata own)
      : owner_(owner),
        exchange_(exchange),
        request_(exchange.request()),
        own_(std::move(own)),
        trailers_wanted_(AcceptsTrailers(request_)) {}

  Task<void> Run() {
    const grpc::Status status = Prepare();
    if (!status.ok()) {
      co_await exchange_.Send(owner_.Refusal(status));
      co_return;
    }
    RpcCall call(exchange_.loop(), std::move(options_));
    exchange_.OnDisconnect([&call] { call.Cancel(); });
    Task<void> task = route_->method->server_streaming() ? Stream(call) : Unary(call);
    co_await std::move(task);
    exchange_.OnDisconnect({});
  }

 private:
  // Does everything up to the call.
  grpc::Status Prepare();
  Task<void> Unary(RpcCall& call);
  Task<void> Stream(RpcCall& call);
  // Renders a response as JSON, or an HttpBody unchanged, and sets *content_type.
  BasicResult<std::string, grpc::Status> Render(grpc::ByteBuffer& bytes,
                                                std::string* content_type) const;
  Task<void> Send(http::HttpResponse response, const Metadata& trailers);
  std::string StreamLine(std::string_view name, std::string_view json) const {
    return "{\"" + std::string(name) + "\":" + EscapeForHtml(json) + "}\n";
  }

  const Transcoder& owner_;
  http::Exchange& exchange_;
  const http::HttpRequest& request_;
  Metadata own_;
  const bool trailers_wanted_;
  const Route* route_ = nullptr;
  RpcCall::Options options_;
};

grpc::Status Transcoder::Call::Prepare() {
  const auto invalid = [](std::string text) {
    return grpc::Status(StatusCode::INVALID_ARGUMENT, std::move(text));
  };
  if (request_.body.size() > owner_.options_.max_body_bytes)
    return invalid("request body too large");
  const Unescaped path = PercentDecode(request_.path, false);
  if (!path.malformed.empty() || !path.text.starts_with('/')) return invalid("Bad Request");

  RequestParts parts{.body = request_.body, .query = request_.query};
  std::string method = request_.method;
  const std::string_view type = request_.header("content-type");
  const bool posted_form = method == "POST" && type == kForm;
  bool form_is_read = false, bad_content_type = false;
  if (const auto other = request_.header("x-http-method-override"); posted_form && !other.empty()) {
    form_is_read = true;
    method = Upper(other);
  }
  auto found = owner_.routes_.Find(method, SplitPath(path.text), posted_form && !form_is_read);
  using Kind = RouteTable::Found::Kind;
  if (found.kind == Kind::kNotFound && !form_is_read) return {StatusCode::NOT_FOUND, "Not Found"};
  if (found.kind == Kind::kRoute && found.route->http_method != method) form_is_read = true;
  if (form_is_read) {
    parts.form = request_.body;
    parts.body = {};
    for (const std::string_view text : {parts.form, parts.query}) {
      if (auto pairs = ParseQuery(text); !pairs.ok()) return invalid(pairs.error());
    }
  } else if (found.kind == Kind::kRoute && found.route->has_query && !type.empty() &&
             (method == "POST" || method == "PUT" || method == "PATCH")) {
    // The query may be sent as a form, unless the body is JSON.
    const auto media_type = MediaType(type);
    bad_content_type = !media_type;
    if (media_type == kForm && found.route->body == Route::Body::kNone) parts.form = request_.body;
  }
  if (found.kind == Kind::kNotFound) return {StatusCode::NOT_FOUND, "Not Found"};
  if (found.kind == Kind::kOtherMethod) return {StatusCode::UNIMPLEMENTED, "Method Not Allowed"};
  route_ = found.route;
  parts.values = std::move(found.values);

  const auto timeout = TimeoutNs(request_);
  if (!timeout.ok()) return invalid(timeout.error());
  auto metadata = ForwardedMetadata(request_);
  if (!metadata.ok()) return invalid(metadata.error());
  options_.metadata = std::move(*metadata);
  options_.metadata.insert(options_.metadata.end(), own_.begin(), own_.end());

  std::unique_ptr<pb::Message> message(
      pb::MessageFactory::generated_factory()->GetPrototype(route_->method->input_type())->New());
  if (auto bound = Bind(*route_, parts, *message); !bound.ok()) return bound;
  if (bad_content_type) return invalid("the content type has no media type");
  const grpc::Slice bytes(message->SerializeAsString());
  options_.request = grpc::ByteBuffer(&bytes, 1);
  options_.method = route_->RpcPath();
  options_.channel = owner_.channel_to_(*route_->method->service(), exchange_.loop());
  if (!options_.channel) {
    return {StatusCode::UNIMPLEMENTED,
            "no service of this installation serves " + route_->method->service()->full_name()};
  }
  // Bounds the timeout: in a clock of nanoseconds, the longest ones would overflow.
  constexpr int64_t kLongestMs = 30LL * 24 * 3'600 * 1'000;
  int64_t ns = *timeout;
  if (ns == 0) {
    ns = 1'000'000 * (route_->method->server_streaming() ? owner_.options_.default_stream_timeout_ms
                                                         : owner_.options_.default_timeout_ms);
  }
  options_.deadline = std::chrono::system_clock::now() +
                      std::chrono::microseconds(std::min(ns / 1'000, kLongestMs * 1'000));
  return grpc::Status::OK;
}

BasicResult<std::string, grpc::Status> Transcoder::Call::Render(grpc::ByteBuffer& bytes,
                                                                std::string* content_type) const {
  std::unique_ptr<pb::Message> message(
      pb::MessageFactory::generated_factory()->GetPrototype(route_->method->output_type())->New());
  grpc::ProtoBufferReader reader(&bytes);
  pb::io::CodedInputStream coded(&reader);
  coded.SetRecursionLimit(kMaxMessageDepth);
  if (!message->ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage()) {
    return Fail{grpc::Status(StatusCode::INTERNAL, "the answer of the service cannot be read")};
  }
  *content_type = kJson;
  if (message->GetDescriptor()->full_name() == kHttpBody) {
    auto& body = static_cast<google::api::HttpBody&>(*message);
    *content_type = body.content_type();
    return std::move(*body.mutable_data());
  }
  auto json = route_->response_field == nullptr ? WriteMessage(*message)
                                                : WriteField(*message, route_->response_field);
  if (!json.ok()) return Fail{grpc::Status(StatusCode::UNKNOWN, json.error())};
  return std::move(*json);
}

Task<void> Transcoder::Call::Send(http::HttpResponse response, const Metadata& trailers) {
  for (const auto& header : owner_.options_.response_headers) response.headers.push_back(header);
  if (!trailers_wanted_) {
    co_await exchange_.Send(std::move(response));
    co_return;
  }
  const http::Headers fields = HeadersOf(trailers, "Grpc-Trailer-");
  std::set<std::string> names;
  for (const auto& [name, value] : fields) {
    if (names.insert(name).second) response.headers.emplace_back("trailer", name);
  }
  if (!co_await exchange_.BeginStream(response.status, std::move(response.headers))) co_return;
  if (!co_await exchange_.Write(std::move(response.body))) co_return;
  exchange_.SetTrailers(fields);
  co_await exchange_.EndStream();
}

Task<void> Transcoder::Call::Unary(RpcCall& call) {
  grpc::ByteBuffer bytes, more;
  const bool answered = co_await call.Next(&bytes);
  // The status follows the response; a second response violates the protocol.
  bool extra = false;
  while (answered && co_await call.Next(&more)) extra = true;
  grpc::Status status = call.status();
  if (status.ok() && (!answered || extra))
    status = grpc::Status(StatusCode::INTERNAL, "the service did not answer with one message");
  const http::Headers headers = HeadersOf(call.headers(), "Grpc-Metadata-");
  http::HttpResponse response;
  if (status.ok()) {
    std::string type;
    auto body = Render(bytes, &type);
    if (body.ok()) {
      response.headers.emplace_back("content-type", type);
      response.headers.insert(response.headers.end(), headers.begin(), headers.end());
      response.body = std::move(*body);
    } else {
      status = body.error();
    }
  }
  if (!status.ok()) response = ErrorResponse(Shown(status), headers);
  co_await Send(std::move(response), call.trailers());
}

Task<void> Transcoder::Call::Stream(RpcCall& call) {
  grpc::ByteBuffer bytes;
  bool started = false;
  grpc::Status status;
  while (co_await call.Next(&bytes)) {
    std::string type;
    auto body = Render(bytes, &type);
    if (!body.ok()) {
      status = body.error();
      call.Cancel();
      break;
    }
    const bool raw = route_->method->output_type()->full_name() == kHttpBody;
    std::string line = raw ? *body + "\n" : StreamLine("result", *body);
    if (!started) {
      http::Headers headers = HeadersOf(call.headers(), "Grpc-Metadata-");
      headers.emplace_back("content-type", type);
      for (const auto& header : owner_.options_.response_headers) headers.push_back(header);
      if (!co_await exchange_.BeginStream(200, std::move(headers))) co_return;
      started = true;
    }
    if (!co_await exchange_.Write(std::move(line))) co_return;
  }
  if (status.ok()) status = call.status();
  const http::Headers headers = HeadersOf(call.headers(), "Grpc-Metadata-");
  if (status.ok() && !started) {
    http::HttpResponse empty{.status = 200, .headers = headers};
    for (const auto& header : owner_.options_.response_headers) empty.headers.push_back(header);
    co_await exchange_.Send(std::move(empty));
    co_return;
  }
  if (!status.ok()) {
    const google::rpc::Status shown = Shown(status);
    const auto json = WriteMessage(shown);
    // If even the error cannot be written, send nothing.
    std::string line = json.ok() ? StreamLine("error", *json) : std::string();
    if (!started) {
      http::HttpResponse response{.status = HttpStatusOf(shown.code()), .headers = headers};
      response.headers.emplace_back("content-type", kJson);
      for (const auto& header : owner_.options_.response_headers)
        response.headers.push_back(header);
      response.body = std::move(line);
      co_await exchange_.Send(std::move(response));
      co_return;
    }
    if (!co_await exchange_.Write(std::move(line))) co_return;
  }
  co_await exchange_.EndStream();
}

Transcoder::Transcoder(RouteTable routes, ChannelTo channel_to, Options options)
    : routes_(std::move(routes)),
      channel_to_(std::move(channel_to)),
      options_(std::move(options)) {}

Task<void> Transcoder::Serve(http::Exchange& exchange, Metadata own) const {
  Call call(*this, exchange, std::move(own));
  co_await call.Run();
}

http::HttpResponse Transcoder::Refusal(const grpc::Status& status) const {
  http::HttpResponse response = ErrorResponse(Shown(status), {});
  for (const auto& header : options_.response_headers) response.headers.push_back(header);
  return response;
}

http::HttpResponse Transcoder::Refusal(const Error& error) const {
  const bool too_large = error.id == ErrorId::kRequestTooLarge;
  return Refusal(grpc::Status(rpc::CodeOf(error), too_large ? "request body too large"
                                                            : std::string(error.public_message())));
}

}  // namespace tollgate::transcode
