// Passes an error on to the caller: what RETURN_IF_ERROR and ASSIGN_OR_RETURN are for absl::Status,
// for BasicResult.
//
//   TRY(expression);             returns the error of the expression, if it has one
//   TRY(auto name, expression);  the same; without an error, "name" has the value
//
// CO_TRY is for coroutines. An expression with a comma outside of parentheses needs parentheses.
#pragma once

#include <type_traits>
#include <utility>

#include "common/base/result.h"

namespace tollgate {

// False for values whose destructor ends something, for example a transaction: those need a name.
template <typename Result>
inline constexpr bool kMayBeDropped = std::is_void_v<typename Result::value_type> ||
                                      std::is_copy_constructible_v<typename Result::value_type>;

}  // namespace tollgate

#define TRY(...) TOLLGATE_TRY_(return, __VA_ARGS__)
#define CO_TRY(...) TOLLGATE_TRY_(co_return, __VA_ARGS__)

#define TOLLGATE_TRY_(give, ...)                                                         \
  TOLLGATE_TRY_FORM_(__VA_ARGS__, VALUE, VALUE, VALUE, VALUE, VALUE, VALUE, VALUE, ONLY) \
  (give, __VA_ARGS__)
#define TOLLGATE_TRY_FORM_(a, b, c, d, e, f, g, h, form, ...) TOLLGATE_TRY_##form##_

#define TOLLGATE_TRY_ONLY_(give, ...)                                                           \
  do {                                                                                          \
    auto tried_result = (__VA_ARGS__);                                                          \
    static_assert(::tollgate::kMayBeDropped<decltype(tried_result)>, "the value needs a name"); \
    if (!tried_result.ok()) give ::tollgate::Fail{std::move(tried_result).error()};             \
  } while (false)
#define TOLLGATE_TRY_VALUE_(give, declaration, ...) \
  TOLLGATE_TRY_NAMED_(TOLLGATE_TRY_NAME_(__COUNTER__), give, declaration, __VA_ARGS__)
#define TOLLGATE_TRY_NAMED_(result, give, declaration, ...)           \
  auto result = (__VA_ARGS__);                                        \
  if (!result.ok()) give ::tollgate::Fail{std::move(result).error()}; \
  declaration = *std::move(result)
#define TOLLGATE_TRY_NAME_(number) TOLLGATE_TRY_JOIN_(tried_result_, number)
#define TOLLGATE_TRY_JOIN_(left, right) TOLLGATE_TRY_JOINED_(left, right)
#define TOLLGATE_TRY_JOINED_(left, right) left##right
