#include "tests/engine_faults/garbles.h"

#include <cstdio>
#include <string>

namespace tollgate::test {
namespace {

constexpr char kStreamHead[] = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
constexpr int64_t kLongMs = 60'000;  // beyond every bound of the product

class List {
 public:
  Json& Add(const std::string& name) {
    scripts_.push_back(Json::Object());
    return scripts_.back().Set("fault", name);
  }
  void Status(int status, const std::string& body, bool retry_after = false) {
    Json& script = Add(std::to_string(status));
    script.Set("status", status).Set("error_body", body);
    if (retry_after) script.Set("headers", Json::Object().Set("retry-after", "1"));
  }
  void Raw(const std::string& name, const std::string& bytes, const std::string& end) {
    Add(name).Set("raw_response", bytes).Set("raw_end", end);
  }
  // The fault comes after some tokens.
  void Tail(const std::string& name, int64_t tokens, const std::string& bytes,
            const std::string& end) {
    Add(name).Set("raw_after_tokens", tokens).Set("raw_response", bytes).Set("raw_end", end);
  }
  std::vector<Json> Take() { return std::move(scripts_); }

 private:
  std::vector<Json> scripts_;
};

// A chunk of HTTP.
std::string Chunk(const std::string& text) {
  char size[24];
  std::snprintf(size, sizeof size, "%zx\r\n", text.size());
  return size + text + "\r\n";
}

// A chunk that ends in 5 MiB without a line end.
std::string HugeLine() {
  const std::string begin = "data: {\"engine-body\":\"";
  char size[24];
  std::snprintf(size, sizeof size, "%zx\r\n", begin.size() + (5u << 20));
  return size + begin + "{fill}";
}

void AddStatuses(List& list) {
  const std::string page = "<html><body>engine-body {mark}</body></html>";
  const std::string error =
      R"({"error":{"message":"engine-body {mark}","type":"InternalServerError","code":500}})";
  const std::string flat = R"({"object":"error","message":"engine-body {mark}"})";
  list.Status(500, error);
  list.Status(501, "engine-body {mark}\nTraceback (most recent call last):");
  list.Status(502, page);
  list.Status(503, page, true);
  list.Status(504, page);
  list.Status(429, flat, true);
  list.Status(401, R"({"error":"engine-body {mark}"})");
  list.Status(403, page);
  list.Status(404, R"({"detail":"engine-body {mark}"})");
  list.Status(422, R"({"detail":[{"msg":"engine-body {mark}"}]})");
  list.Add("302")
      .Set("status", 302)
      .Set("error_body", page)
      .Set("headers", Json::Object().Set("location", "http://127.0.0.1:1/engine-body"));
}

void AddHeads(List& list) {
  list.Raw("head cut", "HTTP/1.1 200 OK\r\ncontent-ty", "close");
  list.Raw("head reset", "HTTP/1.1 200 OK\r\ncontent-ty", "reset");
  list.Raw("head hangs", "HTTP/1.1 200 OK\r\ncontent-ty", "hang");
  list.Raw("head too long", "HTTP/1.1 200 OK\r\nx-engine-body: {fill}", "hang");
  list.Raw("not HTTP", "SSH-2.0-engine-body {mark}\r\n", "close");
  list.Raw("no status", "HTTP/1.1 engine-body\r\n\r\n", "close");
  list.Raw("empty body",
           "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 0\r\n\r\n",
           "keep");
  list.Raw("short body",
           "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n"
           "{\"engine-body\":\"{mark}",
           "close");
  list.Raw("compressed",
           std::string(kStreamHead) + "content-encoding: gzip\r\n\r\n\x1f engine-body {mark}\n\n",
           "close");
  list.Raw("no answer", "", "reset");
  list.Add("silent").Set("delay_ms", kLongMs);
}

void AddBodies(List& list) {
  Json page = Json::Array();
  list.Add("page")
      .Set("raw_type", "text/html")
      .Set("raw_chunks", page.Add("<html><body>engine-body {mark}</body></html>"));
  Json object = Json::Array();
  list.Add("other JSON")
      .Set("raw_type", "application/json")
      .Set("raw_chunks", object.Add(R"({"engine-body":"{mark}"})"));
  Json null = Json::Array();
  list.Add("null").Set("raw_type", "application/json").Set("raw_chunks", null.Add("null"));
  list.Add("cut at once").Set("cut_after_tokens", 0);
  list.Add("cut").Set("cut_after_tokens", 4);
  list.Add("reset").Set("cut_after_tokens", 3).Set("cut_reset", true);
  list.Add("hangs").Set("hang_after_tokens", 3);
  list.Add("error in stream").Set("in_stream_error", "engine-body").Set("in_stream_error_after", 3);
  list.Tail("bad JSON", 3, Chunk("data: {\"engine-body\n\n"), "close");
  list.Tail("bad JSON at once", 0, Chunk("data: engine-body\n\n"), "hang");
  list.Tail("half an event", 2,
            Chunk("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"engine-body"),
            "close");
  list.Tail("huge line", 2, HugeLine(), "hang");
  list.Tail("bad chunk size", 2, "zz\r\nengine-body", "hang");
  list.Tail("no finish", 3, Chunk("data: [DONE]\n\n") + "0\r\n\r\n", "keep");
  list.Tail("ends early", 3, "0\r\n\r\n", "keep");
  // The answer is complete, but the connection's next request must not get the bytes that follow.
  const std::string second =
      R"({"choices":[{"index":0,"message":{"content":"engine-body"},"finish_reason":"stop"}]})";
  list.Add("a second answer")
      .Set("behind", "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: " +
                         std::to_string(second.size()) + "\r\n\r\n" + second);
}

}  // namespace

const std::vector<Json>& Garbles() {
  static const std::vector<Json> kAll = [] {
    List list;
    AddStatuses(list);
    AddHeads(list);
    AddBodies(list);
    return list.Take();
  }();
  return kAll;
}

}  // namespace tollgate::test
