// The tables of auth for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "services/auth/storage/auth_store.h"

namespace tollgate::auth {

// For TestPostgres::MakeDatabase.
inline void MakeAuthSchema(const std::string& url) {
  const auto opened = AuthStore::Open(
      {.database = {.url = url}, .pepper = std::string(32, 'p'), .brand = "tollgate"},
      SystemClock::Get());
  ASSERT_TRUE(opened) << opened.error().ToString();
}

}  // namespace tollgate::auth
