// Parsing helpers for the chat-completions tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "gateway/surfaces/chat_completions/request.h"

namespace tollgate::gateway::testing {

inline Result<CanonicalRequest> Parse(const std::string& body) {
  const auto document = json::Document::ParseView(body);
  EXPECT_TRUE(document.ok()) << body;
  return ParseChatRequest(*document);
}

// A valid body with these additional members.
inline std::string Body(const std::string& more = "") {
  return R"({"model":"ns/m","messages":[{"role":"user","content":"hi"}])" +
         (more.empty() ? "" : "," + more) + "}";
}

// Parses a request that must be accepted.
inline CanonicalRequest Good(const std::string& body) {
  auto request = Parse(body);
  EXPECT_TRUE(request.ok()) << body << " " << (request.ok() ? "" : request.error().ToString());
  return request.ok() ? std::move(*request) : CanonicalRequest{};
}

// Returns the param of the 400, or "accepted".
inline std::string Refused(const std::string& body) {
  const auto request = Parse(body);
  if (request.ok()) return "accepted";
  EXPECT_EQ(request.error().id, ErrorId::kBadRequest);
  EXPECT_FALSE(request.error().message.empty());
  return request.error().param;
}

// The messages of Body().
inline const std::string kMessages = R"("messages":[{"role":"user","content":"hi"}])";

}  // namespace tollgate::gateway::testing
