// Returns an error to the caller, or goes on with the value: what ASSIGN_OR_RETURN and
// RETURN_IF_ERROR are for absl::Status, for BasicResult.
#pragma once

#include <utility>

#include "common/base/result.h"

// TOLLGATE_TRY(expression);  The function returns the error of the expression, if it has one.
#define TOLLGATE_TRY(...) TOLLGATE_TRY_AS_(return, __VA_ARGS__)

// TOLLGATE_TRY_ASSIGN(auto name, expression);  As above; else "name" has the value.
#define TOLLGATE_TRY_ASSIGN(declaration, ...) \
  TOLLGATE_TRY_ASSIGN_AS_(TOLLGATE_TRY_NAME_(__COUNTER__), return, declaration, __VA_ARGS__)

// The same in coroutines.
#define TOLLGATE_CO_TRY(...) TOLLGATE_TRY_AS_(co_return, __VA_ARGS__)
#define TOLLGATE_CO_TRY_ASSIGN(declaration, ...) \
  TOLLGATE_TRY_ASSIGN_AS_(TOLLGATE_TRY_NAME_(__COUNTER__), co_return, declaration, __VA_ARGS__)

#define TOLLGATE_TRY_AS_(give, ...)                            \
  do {                                                         \
    if (auto tried_result = (__VA_ARGS__); !tried_result.ok()) \
      give ::tollgate::Fail{std::move(tried_result).error()};  \
  } while (false)
#define TOLLGATE_TRY_ASSIGN_AS_(result, give, declaration, ...)       \
  auto result = (__VA_ARGS__);                                        \
  if (!result.ok()) give ::tollgate::Fail{std::move(result).error()}; \
  declaration = *std::move(result)
#define TOLLGATE_TRY_NAME_(number) TOLLGATE_TRY_JOIN_(tried_result_, number)
#define TOLLGATE_TRY_JOIN_(left, right) TOLLGATE_TRY_JOINED_(left, right)
#define TOLLGATE_TRY_JOINED_(left, right) left##right
