// BasicResult<T, E>: a value or an error. Exceptions do not cross the boundary of a module. E is
// usually tollgate::Error (Result<T> of common/error/error.h), or a plain std::string where no
// caller needs to tell errors apart.
#pragma once

#include <cassert>
#include <optional>
#include <utility>
#include <variant>

namespace tollgate {

// Converts to any result with this error type: `return Fail{error};`.
template <typename E>
struct Fail {
  E error;
};
template <typename E>
Fail(E) -> Fail<E>;

template <typename T, typename E>
class [[nodiscard]] BasicResult {
 public:
  using value_type = T;
  using error_type = E;

  BasicResult(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit
  template <typename U>
  BasicResult(Fail<U> fail) : state_(std::in_place_index<1>, std::move(fail.error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    assert(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  E& error() & {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }
  const E& error() const& {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }
  E&& error() && {
    assert(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  std::variant<T, E> state_;
};

template <typename E>
class [[nodiscard]] BasicResult<void, E> {
 public:
  using value_type = void;
  using error_type = E;

  BasicResult() = default;
  template <typename U>
  BasicResult(Fail<U> fail) : error_(std::move(fail.error)) {}  // NOLINT: implicit

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const E& error() const& {
    assert(!ok());
    return *error_;
  }
  E&& error() && {
    assert(!ok());
    return std::move(*error_);
  }

 private:
  std::optional<E> error_;
};

// Whether the call succeeded, for callers that do not need the value.
template <typename T, typename E>
BasicResult<void, E> WithoutValue(BasicResult<T, E> result) {
  if (!result.ok()) return Fail{std::move(result).error()};
  return {};
}

// The value, or nullopt if the call failed.
template <typename T, typename E>
BasicResult<T, E> ValueOrError(BasicResult<void, E> done, T value) {
  if (!done.ok()) return Fail{std::move(done).error()};
  return value;
}

}  // namespace tollgate
