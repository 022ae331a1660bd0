// Classes of ASCII characters, without locale.
#pragma once

namespace tollgate {

inline constexpr char kBase62[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
// A letter or digit, which is also a base62 digit.
constexpr bool IsAlnum(char c) { return IsDigit(c) || IsLower(c) || IsUpper(c); }
// The value of a hexadecimal digit of either case, or -1.
constexpr int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace tollgate
