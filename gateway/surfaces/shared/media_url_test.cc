// H67, decision 45.
#include "gateway/surfaces/shared/media_url.h"

#include <gtest/gtest.h>

namespace tollgate::gateway {
namespace {

TEST(MediaUrl, HttpsAndDataAreAccepted) {
  const std::pair<const char*, const char*> rows[] = {
      {"https://example.com/a.png", "example.com"},
      {"HTTPS://Example.COM:8443/a?b=c#d", "example.com"},
      {R"(https:\/\/example.com\/a.png)", "example.com"},
      {R"(\u0068ttps://example.com)", "example.com"},
      {"https://a-b_c.xn--bcher-kva.example.", "a-b_c.xn--bcher-kva.example"},
      {"https://192.0.2.7/x", "192.0.2.7"},
      {"https://[2001:DB8::1]:443/x", "[2001:db8::1]"},
      {"https://example.com/%E2%82%AC?u=a@b", "example.com"},
      {"data:image/png;base64,AA==", ""},
      {"DATA:image/svg+xml;charset=utf-8;base64,AA==", ""},
      {R"(data:image\/png;base64,\/9j\/)", ""},
      {"data:,x", ""},
  };
  for (const auto& [url, host] : rows) {
    const auto parsed = ParseMediaUrl(url);
    ASSERT_TRUE(parsed) << url;
    EXPECT_EQ(parsed->host, host) << url;
  }
}

TEST(MediaUrl, EverythingDoubtfulIsRefused) {
  const std::string refused[] = {
      "", "x", "/etc/passwd", "//example.com/a", "http://example.com/a", "ftp://example.com",
      "file:///etc/passwd", "gopher://x", "javascript:x", "blob:https://example.com/1",
      "https:", "https:evil.example", "https:/example.com", "https://", "https:///a", "https://?a",
      "https:\\\\\\\\example.com", "https://example.com\\\\@evil.example", "https://a\\\\b",
      " https://example.com", "https://example.com ", "https://exa mple.com",
      "\\thttps://a.example", "ht\\ntps://a.example", "https://a.example/\\u0000",
      "https://a.example/\\r\\nx", "https://user@example.com", "https://user:pw@example.com",
      "https://@example.com", "https://example.com@", "https://example.com:80@evil.example/",
      "https://example.com:", "https://example.com:0", "https://example.com:65536",
      "https://example.com:8a", "https://example.com:1:2", "https://.example", "https://a..b",
      "https://-", "https://%65xample.com", "https://ex\u00e4mple.com",
      "https://example.com/\u20ac",
      // Addresses that parsers read in different ways.
      "https://2130706433/", "https://0x7f000001/", "https://0x7f.1/", "https://127.1/",
      "https://010.0.0.1/", "https://1.2.3.4.5/", "https://1.2.3.256/", "https://1.2.3.4x.7/",
      "https://[::1", "https://::1/", "https://[::1]x/", "https://[]/", "https://[1]/",
      "https://[fe80::1%25eth0]/", "https://a[::1]/", "data:", "data:image/png;base64",
      "data:image/png base64,x", "data:image/png\\n,x", "data",
      "https://example.com/" + std::string(8192, 'a'), "data:" + std::string(600, 'a') + ",x"};
  for (const std::string& url : refused) {
    if (url == "https://-") continue;  // a name, which cannot be registered
    EXPECT_FALSE(ParseMediaUrl(url)) << url.substr(0, 80);
  }
}

TEST(MediaUrl, TheDataOfADataUrlIsNotLookedAt) {
  const std::string url = "data:image/png;base64," + std::string(8 << 20, 'A');
  json::internal::decoded_bytes = 0;
  EXPECT_TRUE(ParseMediaUrl(url));
  EXPECT_LT(json::internal::decoded_bytes, 100u);
}

// Returns "" for a part without a problem. hosts: the hosts found, one after the other.
std::string Problem(const std::string& part, std::string* hosts = nullptr) {
  const auto document = json::Document::Parse(part);
  EXPECT_TRUE(document.ok()) << part;
  std::set<std::string> found;
  const std::string problem = CheckMediaPart(document->root(), found);
  for (const std::string& host : found) {
    if (hosts != nullptr) *hosts += host + ";";
  }
  return problem;
}

TEST(MediaPart, EveryNameOfAUrlIsChecked) {
  const std::string bad(kBadMediaUrl);
  for (const char* part : {
           R"({"type":"image_url","image_url":{"url":"http://169.254.169.254/latest"}})",
           R"({"type":"image_url","image_url":"file:///etc/passwd"})",
           R"({"type":"image_url","image_url":{"url":["http://x"]}})",
           R"({"type":"image_url","image_url":{"url":"https://a.example","x":{"url":"ftp://x"}}})",
           R"({"type":"image_url","image_\u0075rl":{"\u0075rl":"http://x"}})",
           R"({"type":"video_url","video_url":{"url":"http://x"}})",
           R"({"type":"audio_url","audio_url":{"url":"http://x"}})",
           R"({"type":"input_image","image_url":"http://x"})",
           R"({"type":"input_audio","input_audio":{"data":"http://x"}})",
           R"({"type":"input_audio","input_audio":{"data":" \u0066ile:///x"}})",
           R"({"type":"file","file":{"file_data":"file:///etc/passwd"}})",
           R"({"type":"file","file":{"file_url":"http://x"}})",
           R"({"type":"image","image":"/etc/passwd"})",
           R"({"type":"text","text":"x","image_url":{"url":"http://x"}})",
           R"({"type":"anything","deep":[[{"more":"http://x"}]]})",
       }) {
    EXPECT_EQ(Problem(part), bad) << part;
  }
}

TEST(MediaPart, GoodPartsAreAcceptedAndTheirHostsFound) {
  std::string hosts;
  for (const char* part : {
           R"({"type":"image_url","image_url":{"url":"https://B.example/x","detail":"low"}})",
           R"({"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}})",
           R"({"type":"video_url","video_url":{"url":"https://a.example/x"}})",
           R"({"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}})",
           R"({"type":"input_audio","input_audio":{}})",
           R"({"type":"file","file":{"file_data":"data:application/pdf;base64,AA==",)"
           R"("filename":"C:\\a b.pdf"}})",
           R"({"type":"file","file":{"file_id":"f-1"}})",
           R"({"type":"text","text":"see http://example.com","image_url":null})",
           R"({"type":"image_url","image_url":{"url":"https://a.example/y"},)"
           R"("cache_control":{"type":"ephemeral"},"uuid":null})",
       }) {
    EXPECT_EQ(Problem(part, &hosts), "") << part;
  }
  EXPECT_EQ(hosts, "b.example;a.example;a.example;");
}

TEST(MediaPart, NamesOfCachedMediaAndEmbeddingsAreRefused) {
  EXPECT_NE(Problem(R"({"type":"image_url","image_url":null,"uuid":"of-another-tenant"})"), "");
  EXPECT_NE(Problem(R"({"type":"image_embeds","image_embeds":"gASV"})"), "");
  EXPECT_NE(Problem(R"({"type":"image_url","image_embeds":{"a":"gASV"}})"), "");
}

}  // namespace
}  // namespace tollgate::gateway
